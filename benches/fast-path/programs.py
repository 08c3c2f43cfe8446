"""The time that the programs take, as the kernel counts it (kernel.bpf_stats_enabled).

While it counts, each run costs some 40 ns more, so this has turns of its own.
"""

from pathlib import Path

from failure import Failure

SWITCH = Path("/proc/sys/kernel/bpf_stats_enabled")


class Counting:
    """While it is entered, the kernel counts."""

    def __enter__(self):
        self.before = SWITCH.read_text()
        SWITCH.write_text("1\n")

    def __exit__(self, *_):
        SWITCH.write_text(self.before)


class Watch:
    """Reads the counts of the process whose id is in a file, whenever it is told to look."""

    def __init__(self, pid_file):
        self.pid_file, self.seen = pid_file, []

    def look(self):
        seen = read(self.pid_file)
        if seen:
            self.seen.append(seen)

    def each(self):
        return each(self.seen)


def each(seen):
    """Nanoseconds a request between the first and the last look, all programs together: each
    request is one segment at ingress, and no program runs more often than that."""
    if len(seen) < 2:
        raise Failure("the programs could not be watched")
    first, last = seen[0], seen[-1]
    spent = sum(last[number][0] - first.get(number, (0, 0))[0] for number in last)
    runs = max(last[number][1] - first.get(number, (0, 0))[1] for number in last)
    return spent / max(runs, 1)


def read(pid_file):
    """By program: nanoseconds, runs. Nothing when the process is gone or not there yet."""
    try:
        folder = Path("/proc") / pid_file.read_text().strip() / "fdinfo"
        found = [parse(entry.read_text()) for entry in folder.iterdir()]
    except OSError:
        return {}
    return dict(filter(None, found))


def parse(text):
    told = fields(text)
    if "run_time_ns" not in told:
        return None
    return int(told["prog_id"]), (int(told["run_time_ns"]), int(told["run_cnt"]))


def fields(text):
    """What the kernel tells of a descriptor, by name."""
    return dict(map(str.strip, line.split(":", 1)) for line in text.splitlines() if ":" in line)
