"""How each server is started in the bed's namespace, and how it is known to be ready.

A command stays in the foreground and is ended with everything that it started; "ready" is a shell
command that succeeds from then on. Where the kernel is to answer, it is ready when it did: a
connection on which bytes went by before that belongs to user mode.
"""

import shlex
from dataclasses import dataclass, replace
from pathlib import Path

import servers
from cases import (ATTACHED, ATTACHED_AWAKE, H2O, KERNEL, KERNEL_AWAKE, LARGER_SIZES, LONGEST_ANSWER,
                   NGINX, SIZES, USER)
from failure import Failure

HOST, PORT = "10.77.0.1", 8080  # of a namespace that nobody else is in
HERE = Path(__file__).parent

# Beside what is needed at all, only limits that 200,000 connections would meet.
AFPA = """\
workers = 1

[limits]
connections = 1000000
connections_per_client = 1000000

[timeouts]
idle = "10m"

[fast_path]
mode = "@mode@"
flows = @flows@
answer_max = "@longest@B"
rest_after = @rest_after@

[compression]
enabled = false

[control]
path = "@control@"

[[site]]
listen = ["@host@:@port@"]
root = "@root@"
"""

# Each path has been answered by the kernel.
PINNED = """\
for path in @paths@; do
    before=$(@answered@)
    curl --silent --fail --output /dev/null "http://@host@:@port@$path" || exit 1
    curl --silent --fail --output /dev/null "http://@host@:@port@$path" || exit 1
    test "$(@answered@)" -gt "$before" || exit 1
done
"""


@dataclass(frozen=True)
class Contender:
    name: str
    command: str
    ready: str = ""


class Contenders:
    """All servers, over one document root, with their files in one folder."""

    def __init__(self, afpa, folder, root, flows):
        self.afpa, self.folder, self.root = afpa, folder, root
        self.control = folder / "afpa.sock"
        self.flows = flows

    def of(self, name, connections=0):
        """None for the reflector, which the bed brings along."""
        if name == KERNEL:
            return self.kernel(connections)
        make = {USER: self.user, ATTACHED: self.attached, NGINX: self.nginx, H2O: self.h2o,
                KERNEL_AWAKE: self.kernel_awake, ATTACHED_AWAKE: self.attached_awake}
        return make[name]() if name in make else None

    def user(self):
        return Contender(USER, self.serve("off", 65536), self.answers())

    def kernel_awake(self):
        return replace(self.kernel(0, rest_after=0), name=KERNEL_AWAKE)

    def attached_awake(self):
        return replace(self.attached(rest_after=0), name=ATTACHED_AWAKE)

    def kernel(self, connections, rest_after=64):
        ready = self.ready("kernel", str(self.control))
        size = max(65536, self.flows if connections else 0)
        pid = self.folder / "pid"
        serve = self.serve("on", size, rest_after)
        command = self.script(f"kernel-{rest_after}", f"echo $$ >{pid}\nexec {serve}\n")
        if connections <= most_descriptors():
            return Contender(KERNEL, command, ready)
        return self.crowd(Contender(KERNEL, command, ready), connections, size)

    def crowd(self, server, connections, size):
        """A server with more connections than a process may have descriptors.

        Others listen beside it and hold the rest. The kernel spreads connections over all who
        listen; the fast path does not ask who has accepted one. They begin when it has answered:
        what goes to one of them has to be answered in the kernel.
        """
        holding, held, memory = (self.folder / name for name in ("holding", "held", "memory"))
        others = -(-connections // (most_descriptors() - 4000)) - 1
        ready = self.script("ready-crowd", f"""\
test -e {holding} || {{ {server.ready} || exit 1; touch {holding}; }}
test -e {held} || exit 1
# What the kernel has locked for the table of flows, and how many it has room for.
cat /proc/$(cat {self.folder / "pid"})/fdinfo/* 2>/dev/null | awk '
    /^max_entries:/ {{ entries = $2 }}
    /^memlock:/ && entries == {size} {{ print $2, entries; exit }}' >{memory}
""")
        command = self.script("crowd", f"""\
rm -f {holding} {held}
# Of this namespace: all of them may come before one is accepted.
echo 65535 >/proc/sys/net/core/somaxconn
(
    while ! test -e {holding}; do sleep 0.05; done
    exec python3 {HERE / "hold.py"} {HOST} {PORT} {others} {held}
) &
exec {server.command}
""")
        return Contender(server.name, command, ready)

    def attached(self, rest_after=64):
        socket = f"/run/afpa/attach-$(stat -L -c %i /proc/self/ns/net)-{HOST}:{PORT}.sock"
        ready = self.ready("attached", socket)
        attach = [str(self.afpa), "attach", "--listen", f"{HOST}:{PORT}", "--root", str(self.root),
                  "--exclude", "/plain", "--server-timeout", "300",
                  "--answer-max", str(LONGEST_ANSWER), "--rest-after", str(rest_after)]
        command = self.script(f"attached-{rest_after}", f"""\
{self.nginx().command} &
while ! curl --silent --output /dev/null http://{HOST}:{PORT}/; do sleep 0.02; done
echo $$ >{self.folder / "pid"}
exec {shlex.join(attach)}
""")
        return Contender(ATTACHED, command, ready)

    def nginx(self):
        config = self.template("nginx")
        errors = self.folder / "nginx" / "errors.txt"
        command = [program("nginx"), "-p", str(config.parent), "-c", str(config), "-e", str(errors)]
        return Contender(NGINX, shlex.join(command), self.answers())

    def h2o(self):
        command = [program("h2o"), "-m", "worker", "-c", str(self.template("h2o"))]
        return Contender(H2O, shlex.join(command), self.answers())

    def serve(self, mode, flows, rest_after=64):
        config = self.folder / f"afpa-{mode}-{flows}-{rest_after}.toml"
        config.write_text(servers.fill(AFPA, mode=mode, flows=flows, rest_after=rest_after,
                                       control=self.control, longest=LONGEST_ANSWER, host=HOST,
                                       port=PORT, root=self.root))
        return shlex.join([str(self.afpa), "serve", "--config", str(config)])

    def template(self, name):
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        config = folder / "server.conf"
        template = (servers.CONFIGS / f"{name}.conf").read_text()
        config.write_text(servers.fill(template, host=HOST, port=PORT, root=self.root,
                                       folder=folder, user="root"))
        return config

    def answers(self):
        return f"curl --silent --fail --output /dev/null http://{HOST}:{PORT}/{SIZES[0]}.html"

    def ready(self, name, control):
        """`control`: the socket that tells what the kernel has answered, in the shell's words."""
        paths = " ".join(f"/{size}.html" for size in SIZES + LARGER_SIZES)
        answered = f'python3 {HERE / "told.py"} "{control}"'
        return self.script(f"ready-{name}", servers.fill(
            PINNED, paths=paths, host=HOST, port=PORT, answered=answered))

    def script(self, name, text):
        """The command that runs it."""
        file = self.folder / f"{name}.sh"
        file.write_text(text)
        return f"sh {file}"


def most_descriptors():
    """Descriptors that one process may have: the hard limit."""
    import resource
    return resource.getrlimit(resource.RLIMIT_NOFILE)[1]


def program(name):
    found = servers.find(name, Path())
    if not found:
        raise Failure(f"{name} is not here; `make bench-fast-path` sets up what it needs")
    return found
