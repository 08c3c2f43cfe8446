"""The load: wrk with one thread, on its own core."""

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

import children
from failure import Failure

SCRIPT = Path(__file__).with_name("summary.lua")
MARK = "summary: "


@dataclass(frozen=True)
class Load:
    """What wrk saw. `errors` is a sentence, empty when there were none."""
    requests: int
    seconds: float
    bytes: int       # read, heads included
    p50: float       # seconds
    p99: float       # seconds
    errors: str
    p999: float = 0  # seconds; 0: not told


def command(case, url, core, seconds):
    return ["taskset", "-c", str(core), "wrk", "--threads", "1",
            "--connections", str(case.connections), "--duration", f"{seconds}s",
            "--timeout", "10s", "--latency", "--script", str(SCRIPT), url]


def run(case, url, core, seconds):
    """Loads `url` for `seconds`. A wrk that does not end in time is ended and is a failure."""
    process = children.start(command(case, url, core, seconds), stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True)
    try:
        output, _ = process.communicate(timeout=seconds + 30)
    except subprocess.TimeoutExpired:
        raise Failure(f"wrk did not end: {' '.join(process.args)}") from None
    finally:
        children.end(process)
    if process.returncode != 0:
        raise Failure(f"wrk ended with status {process.returncode}: {output.strip()}")
    return parse(output)


def parse(output):
    """The line that summary.lua printed, among wrk's own."""
    for line in output.splitlines():
        if line.startswith(MARK):
            return load(json.loads(line.removeprefix(MARK)))
    raise Failure(f"wrk printed no summary: {output.strip()}")


def load(summary):
    errors = ", ".join(f"{count} {kind} errors" for kind, count in summary["errors"].items() if count)
    if not errors and summary["requests"] == 0:
        errors = "no request was answered"
    return Load(summary["requests"], summary["duration_us"] / 1e6, summary["bytes"],
                summary["p50_us"] / 1e6, summary["p99_us"] / 1e6, errors)
