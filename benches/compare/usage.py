"""Processor time, of a server and of a core, over the length of a measurement."""

import os
from dataclasses import dataclass
from pathlib import Path

TICK = 1 / os.sysconf("SC_CLK_TCK")  # seconds


@dataclass(frozen=True)
class Used:
    """Seconds of processor time between start and stop of a meter."""
    process: float      # user and system time of the server's processes
    server_core: float  # its core, whoever used it, interrupts included
    client_core: float
    stolen: float       # taken by the hypervisor from either core


class Meter:
    """Runs from its creation until `stop`."""

    def __init__(self, pid, server_core, client_core):
        self.pid, self.cores = pid, (server_core, client_core)
        self.before = self.read()

    def stop(self):
        process, server, client = self.read()
        process_before, server_before, client_before = self.before
        stolen = server[1] - server_before[1] + client[1] - client_before[1]
        return Used(process - process_before, server[0] - server_before[0],
                    client[0] - client_before[0], stolen)

    def read(self):
        stat = Path("/proc/stat").read_text()
        process = sum(process_seconds((Path("/proc") / str(pid) / "stat").read_text())
                      for pid in family(self.pid))
        return process, *(core_seconds(stat, core) for core in self.cores)


def family(pid):
    """A process and its children, theirs too: nginx's worker is a child of what was started."""
    pids = [pid]
    for parent in pids:  # grows while it is walked
        for task in Path(f"/proc/{parent}/task").iterdir():
            pids += map(int, (task / "children").read_text().split())
    return pids


def process_seconds(stat):
    """User and system time out of /proc/<pid>/stat, whose second field may hold anything in
    parentheses, blanks and parentheses included (proc(5))."""
    fields = stat[stat.rindex(")") + 2:].split()
    utime, stime = int(fields[11]), int(fields[12])
    return (utime + stime) * TICK


def core_seconds(stat, core):
    """Busy and stolen seconds of one core out of /proc/stat: (user, nice, system, irq, softirq),
    and steal. Waiting for a disk is idle, and guest time is part of user already (proc(5))."""
    for line in stat.splitlines():
        name, *fields = line.split()
        if name == f"cpu{core}":
            user, nice, system, _idle, _wait, irq, softirq, steal = map(int, fields[:8])
            return (user + nice + system + irq + softirq) * TICK, steal * TICK
    raise ValueError(f"no core {core} in /proc/stat")
