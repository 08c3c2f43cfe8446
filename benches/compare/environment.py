"""Everything about the machine that the figures depend on."""

import os
import platform
import re
import subprocess
import time
from pathlib import Path


def describe(started, repository):
    return {
        "time": time.strftime("%Y-%m-%d %H:%M:%S %z"),
        "kernel": platform.release(),
        "system": system_name(),
        "processor": processor(),
        "cores": os.cpu_count(),
        "threads_of_one_core": siblings(),
        "frequency_governor": first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "virtual_machine": "hypervisor" in (cpuinfo("flags") or "").split(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "load_average": os.getloadavg(),
        "versions": {s.name: version(s) for s in started} | {"wrk": run("wrk", "-v")},
        "commit": commit(repository),
    }


def told(environment):
    """The same in a sentence or two, as reports begin."""
    versions = ", ".join(filter(None, environment["versions"].values()))
    return (f"{environment['time']}, commit {environment['commit']}: {environment['processor']}, "
            f"{environment['cores']} cores, Linux {environment['kernel']}, {environment['system']}. "
            f"{versions}.")


def usable_cores():
    return os.sched_getaffinity(0)


def processor():
    return cpuinfo("model name") or platform.machine()


def cpuinfo(key):
    found = re.search(rf"^{key}\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return found and found[1]


def siblings():
    """Cores that share one physical core with core 0: a client there takes from the server."""
    return first_line("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list")


def system_name():
    found = re.search(r'^PRETTY_NAME="(.*)"$', Path("/etc/os-release").read_text(), re.MULTILINE)
    return found and found[1]


def version(server):
    flag = {"nginx": "-v"}.get(server.name, "--version")
    return run(server.program, flag)


def commit(repository):
    name = run("git", "-C", str(repository), "rev-parse", "--short=12", "HEAD")
    changed = run("git", "-C", str(repository), "status", "--porcelain", "--untracked-files=no")
    return f"{name} with changes" if name and changed else name


def run(*command):
    """First line of what a command says, on either channel; None when it cannot be run."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except OSError:
        return None
    lines = (done.stdout + done.stderr).strip().splitlines()
    return lines[0].strip() if lines else None


def first_line(path):
    try:
        return Path(path).read_text().strip()
    except OSError:
        return None
