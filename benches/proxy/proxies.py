"""The proxies under test, and the servers behind them: how they are configured, started, ended."""

import contextlib
import getpass
import os
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import children
from failure import Failure

# The last one is AFPA with its fast path, which answers what it has cached in the kernel; only when
# it is asked for, and only where there is an interface to answer on.
KERNEL = "afpa-kernel"
USUAL = ("afpa", "haproxy", "nginx")
KNOWN = (*USUAL, KERNEL)
CONFIGS = Path(__file__).with_name("configs")
SERVERS = 3


@dataclass
class Proxy:
    name: str
    program: str
    command: list = field(default_factory=list)
    port: int = 0
    process: subprocess.Popen = None

    @property
    def pid(self):
        return self.process.pid


def choose(options, say):
    """The proxies to measure: those named, each of which must be there, or all usual ones that are."""
    chosen = []
    for name in options.proxies.split(",") if options.proxies else USUAL:
        if name not in KNOWN:
            raise Failure(f"no proxy '{name}'; there are: {', '.join(KNOWN)}")
        if name == KERNEL and options.bed == "loopback":
            raise Failure(f"{KERNEL} needs the bed 'cores'")
        program = find(name, options.afpa)
        if program:
            chosen.append(Proxy(name, program))
        elif options.proxies:
            raise Failure(f"{name} is not here; `make bench-proxy` sets up what it needs")
        else:
            say(f"proxies: {name} is not here and is left out")
    for name in needed(options):
        if not find(name, options.afpa):
            raise Failure(f"{name} is not here; `make bench-proxy` sets up what it needs")
    if not chosen:
        raise Failure("no proxy to measure")
    return chosen


def needed(options):
    """Programs that the bed needs whatever is measured."""
    tools = ("wrk",) if options.bed == "loopback" else ("ethtool", "ip", "nsenter", "unshare")
    return (options.servers, *tools)


def find(name, afpa):
    if name in ("afpa", KERNEL):
        return str(afpa.resolve()) if afpa.is_file() else None
    return shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin")


@contextlib.contextmanager
def running(chosen, work, options, network):
    """Servers and proxies, side by side from first to last; ended on the way out."""
    with contextlib.ExitStack() as ends:
        places = start_servers(work, options, network, ends)
        for proxy in chosen:
            proxy.port = children.free_port()
            suffix = "toml" if proxy.name.startswith("afpa") else "conf"
            values = {"host": network.proxy, "port": proxy.port, "root": work / "root"} \
                | {f"server{number}": place for number, place in enumerate(places)}
            template = f"{proxy.name.removesuffix('-kernel')}.{suffix}"
            proxy.process, proxy.command = start(
                proxy.name, proxy.program, template, values, work, options.server_core, ends)
            children.wait_until_up(proxy.name, proxy.process, (network.proxy, proxy.port),
                                   work / proxy.name / "output.txt")
        yield chosen


def start_servers(work, options, network, ends):
    """The servers, as ADDRESS:PORT. nginx is a process for each; AFPA is one that listens thrice."""
    ports = [children.free_port() for _ in range(SERVERS)]
    values = {"host": network.servers, "root": work / "root"}
    program, core, started = find(options.servers, options.afpa), options.client_core, []
    if options.servers == "afpa":
        values |= {f"port{number}": port for number, port in enumerate(ports)}
        started.append(start("server", program, "server.toml", values, work, core, ends,
                             network.at_servers))
    else:
        for number, port in enumerate(ports):
            started.append(start(f"server{number}", program, "server.conf",
                                 values | {"port": port}, work, core, ends, network.at_servers))
    for port in ports:
        process, _ = started[ports.index(port) % len(started)]
        children.wait_until_up(options.servers, process, (network.servers, port))
    return [f"{network.servers}:{port}" for port in ports]


def start(name, program, template, values, work, core, ends, inside=()):
    folder = work / name
    folder.mkdir(parents=True)
    config = folder / f"proxy{Path(template).suffix}"
    text = (CONFIGS / template).read_text()
    if os.geteuid() != 0:
        text = "".join(line for line in text.splitlines(True) if not line.startswith("user"))
    for key, value in (values | {"folder": folder, "user": getpass.getuser()}).items():
        text = text.replace(f"@{key}@", str(value))
    config.write_text(text)
    control = ["serve", "--config", str(config), "--control", str(folder / "control.sock")]
    arguments = {
        "afpa": [*control, "--fast-path", "off"],
        KERNEL: [*control, "--fast-path", "on"],
        "server": [*control, "--fast-path", "on" if inside else "off"],
        "haproxy": ["-db", "-f", str(config)],
    }.get(name, ["-p", str(folder), "-c", str(config), "-e", str(folder / "errors.txt")])
    command = [*inside, "taskset", "-c", str(core), program, *arguments]
    log = ends.enter_context((folder / "output.txt").open("w+"))
    process = children.start(command, stdout=log, stderr=log, cwd=folder)
    ends.callback(children.end, process)
    return process, command
