"""The servers under test: how each is found, configured, started and ended."""

import contextlib
import getpass
import os
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import children
from failure import Failure

KNOWN = ("afpa", "afpa-kernel", "nginx", "h2o")
CONFIGS = Path(__file__).with_name("configs")


@dataclass
class Server:
    name: str
    program: str
    command: list = field(default_factory=list)  # as it was started
    port: int = 0
    process: subprocess.Popen = None

    @property
    def pid(self):
        return self.process.pid

    def url(self, case):
        return f"http://127.0.0.1:{self.port}/{case.file}"


def choose(wanted, afpa, say):
    """The servers to measure: those named, each of which must be there, or all that are."""
    names = wanted.split(",") if wanted else KNOWN
    chosen = []
    for name in names:
        if name not in KNOWN:
            raise Failure(f"no server '{name}'; there are: {', '.join(KNOWN)}")
        program = find(name, afpa)
        if program:
            chosen.append(Server(name, program))
        elif wanted:
            raise Failure(f"{name} is not here; `make compare` sets up what it needs")
        else:
            say(f"servers: {name} is not here and is left out")
    if not chosen:
        raise Failure("no server to measure")
    if not find("wrk", afpa):
        raise Failure("wrk, the load generator, is not here; `make compare` sets it up")
    return chosen


def find(name, afpa):
    if name == "afpa-kernel" and os.geteuid() != 0:
        return None  # its programs are attached to the `lo` of a network namespace, never to the real one
    if name in ("afpa", "afpa-kernel"):
        return str(afpa.resolve()) if afpa.is_file() else None
    # Servers live in sbin, which an ordinary user's PATH leaves out.
    return shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin")


@contextlib.contextmanager
def running(chosen, work, core):
    """All servers, started on `core`; ended on the way out, in whatever way it is taken.

    They run side by side from first to last: an idle one costs nothing, and none is ever measured
    with colder caches than another.
    """
    with contextlib.ExitStack() as ends:
        for server in chosen:
            start(server, work, core, ends)
        yield chosen


def start(server, work, core, ends):
    folder = work / server.name
    folder.mkdir(parents=True)
    server.port = children.free_port()
    server.command = ["taskset", "-c", str(core), server.program,
                      *arguments(server, work / "root", folder)]
    log = ends.enter_context((folder / "output.txt").open("w+"))
    server.process = children.start(server.command, stdout=log, stderr=log, cwd=folder)
    ends.callback(children.end, server.process)
    children.wait_until_up(server.name, server.process, ("127.0.0.1", server.port),
                           folder / "output.txt")


def arguments(server, root, folder):
    if server.name in ("afpa", "afpa-kernel"):
        fast_path = "on" if server.name == "afpa-kernel" else "off"
        return ["serve", str(root), "--listen", f"127.0.0.1:{server.port}", "--workers", "1",
                "--access-log", "off", "--fast-path", fast_path]
    config = folder / "server.conf"
    template = (CONFIGS / f"{server.name}.conf").read_text()
    if os.geteuid() != 0:
        template = without_user(template)
    config.write_text(fill(template, host="127.0.0.1", port=server.port, root=root, folder=folder,
                           user=getpass.getuser()))
    return {"nginx": ["-p", str(folder), "-c", str(config), "-e", str(folder / "errors.txt")],
            "h2o": ["-m", "worker", "-c", str(config)]}[server.name]


def fill(template, **values):
    """Replaces @name@ by its value. (Braces and dollars mean something in these languages.)"""
    for name, value in values.items():
        template = template.replace(f"@{name}@", str(value))
    return template


def without_user(template):
    """Only root can become somebody; h2o fails when others try to become even themselves."""
    return "".join(line for line in template.splitlines(True) if not line.startswith("user"))
