"""What programs cost, by taking them away and putting them back while one server is busy.

Between two turns of a server the machine differs by more than what is asked here: other memory, another moment. So
the programs come and go within a turn, in slices too short for the machine to change, in the order there, away,
away, there: what drifts evenly falls out. The server's core is full, and every response is as long as the next, so
that bytes sent are responses, and time a byte is cost.
"""

import subprocess
import time
from pathlib import Path
from statistics import mean, median, stdev

import children
import hooks
from failure import Failure

SLICE, SETTLE = 0.020, 0.004  # seconds; attaching patches code, which interrupts all cores
ORDER = (True, False, False, True)
MOST_IDLE = 0.05  # of the server's core
PATIENCE = 30
MARGIN = 5  # seconds of a bed before the slices begin


def measure(words, case, pid_file, seconds):
    """Costs of the slices, in groups of ORDER. `words` start a bed that takes so much time and MARGIN."""
    pid_file.unlink(missing_ok=True)
    bed = children.start(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        pid = wait_for(pid_file, bed)
        with hooks.Namespace(pid):
            at_hooks = hooks.Hooks()
            wait_until_busy(at_hooks, bed)
            time.sleep(case.warm_up)
            at_hooks.take(pid, case.nothing)
            groups = slices(at_hooks, time.monotonic() + seconds)
        bed.wait(2 * MARGIN)  # by itself it leaves nothing behind
        return groups
    finally:
        children.end(bed)


def slices(at_hooks, end):
    groups, began, idle = [], time.monotonic(), idle_ticks()
    while time.monotonic() < end:
        groups.append([cost(at_hooks, at_hooks.programs if there else []) for there in ORDER])
    share = (idle_ticks() - idle) / 100 / (time.monotonic() - began)
    if share > MOST_IDLE:
        raise Failure(f"the server's core was idle for {share:.0%}")
    return groups


def cost(at_hooks, programs):
    """Seconds a byte, with these programs."""
    at_hooks.put(programs)
    time.sleep(SETTLE)
    before, began = at_hooks.sent(), time.perf_counter()
    time.sleep(SLICE)
    took, left = time.perf_counter() - began, at_hooks.sent() - before
    if left <= 0:
        raise Failure("nothing was sent")
    return took / left


def added(groups):
    """What the programs add, group by group: 0.05 is five per cent."""
    values = sorted((there + again) / (away + gone) - 1 for there, away, gone, again in groups)
    count = len(values)
    return {"median": median(values), "mean": mean(values), "quarter": values[count // 4],
            "three_quarters": values[count * 3 // 4], "error": stdev(values) / count ** 0.5, "groups": count}


def wait_for(pid_file, bed):
    """The id of who attaches, when that is done."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and bed.poll() is None:
        if pid_file.exists() and pid_file.read_text().strip():
            pid = int(pid_file.read_text())
            if hooks.links_of(pid):
                return pid
        time.sleep(0.05)
    raise Failure("nothing was attached in time")


def wait_until_busy(at_hooks, bed):
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and bed.poll() is None:
        before, idle = at_hooks.sent(), idle_ticks()
        time.sleep(0.5)
        if at_hooks.sent() - before > 10 << 20 and idle_ticks() - idle < 5:
            return
    raise Failure("the server did not become busy")


def idle_ticks():
    """Of the first core, in hundredths of a second."""
    return int(Path("/proc/stat").read_text().splitlines()[1].split()[4])
