"""The proxies under test, and the servers behind them: how they are configured, started, ended."""

import contextlib
import getpass
import os
import shutil
import socket
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

import children
from failure import Failure

KNOWN = ("afpa", "haproxy", "nginx")
CONFIGS = Path(__file__).with_name("configs")
START_LIMIT = 10  # seconds
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


def choose(wanted, afpa, say):
    """The proxies to measure: those named, each of which must be there, or all that are."""
    chosen = []
    for name in wanted.split(",") if wanted else KNOWN:
        if name not in KNOWN:
            raise Failure(f"no proxy '{name}'; there are: {', '.join(KNOWN)}")
        program = find(name, afpa)
        if program:
            chosen.append(Proxy(name, program))
        elif wanted:
            raise Failure(f"{name} is not here; `make bench-proxy` sets up what it needs")
        else:
            say(f"proxies: {name} is not here and is left out")
    for name in ("nginx", "wrk"):
        if not find(name, afpa):
            raise Failure(f"{name} is not here; `make bench-proxy` sets up what it needs")
    if not chosen:
        raise Failure("no proxy to measure")
    return chosen


def find(name, afpa):
    if name == "afpa":
        return str(afpa.resolve()) if afpa.is_file() else None
    return shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin")


@contextlib.contextmanager
def running(chosen, work, options):
    """Servers and proxies, side by side from first to last; ended on the way out."""
    with contextlib.ExitStack() as ends:
        ports = [free_port() for _ in range(SERVERS)]
        for number, port in enumerate(ports):
            start(f"server{number}", find("nginx", options.afpa), "server.conf",
                  {"port": port, "root": work / "root"}, work, options.client_core, ends)
        for proxy in chosen:
            proxy.port = free_port()
            suffix = "toml" if proxy.name == "afpa" else "conf"
            values = {"port": proxy.port, "root": work / "root"} \
                | {f"server{number}": f"127.0.0.1:{port}" for number, port in enumerate(ports)}
            proxy.process, proxy.command = start(
                proxy.name, proxy.program, f"{proxy.name}.{suffix}", values, work,
                options.server_core, ends)
        yield chosen


def start(name, program, template, values, work, core, ends):
    folder = work / name
    folder.mkdir(parents=True)
    config = folder / f"proxy{Path(template).suffix}"
    text = (CONFIGS / template).read_text()
    if os.geteuid() != 0:
        text = "".join(line for line in text.splitlines(True) if not line.startswith("user"))
    for key, value in (values | {"folder": folder, "user": getpass.getuser()}).items():
        text = text.replace(f"@{key}@", str(value))
    config.write_text(text)
    arguments = {
        "afpa": ["serve", "--config", str(config), "--control", str(folder / "control.sock"),
                 "--fast-path", "off"],
        "haproxy": ["-db", "-f", str(config)],
    }.get(name, ["-p", str(folder), "-c", str(config), "-e", str(folder / "errors.txt")])
    command = ["taskset", "-c", str(core), program, *arguments]
    log = ends.enter_context((folder / "output.txt").open("w+"))
    process = children.start(command, stdout=log, stderr=log, cwd=folder)
    ends.callback(children.end, process)
    wait_until_up(name, process, values["port"], folder / "output.txt")
    return process, command


def wait_until_up(name, process, port, log):
    deadline = time.monotonic() + START_LIMIT
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise Failure(f"{name} ended at once: {log.read_text().strip()[-2000:]}")
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        time.sleep(0.02)
    raise Failure(f"{name} does not answer after {START_LIMIT} s: {log.read_text()[-2000:]}")


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]
