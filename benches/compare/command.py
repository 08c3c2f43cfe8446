"""What the benchmarks have in common as commands: how they speak, end and keep what they found."""

import signal
import sys
import time
from pathlib import Path

from failure import Failure

REPOSITORY = Path(__file__).resolve().parents[2]


def say(line):
    print(line, file=sys.stderr, flush=True)


def run(name, measure, options):
    """The exit status of `measure`; signals that end it let it clean up."""
    for ending in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, lambda number, _: sys.exit(f"{name}: ended by {signal.Signals(number).name}"))
    try:
        return measure(options)
    except Failure as failure:
        say(f"{name}: {failure}")
        return 1
    except KeyboardInterrupt:
        say(f"{name}: interrupted")
        return 130


def new_folder(name, wanted=None):
    """Where results go: what was asked for, or build/<name>/<time>."""
    folder = Path(wanted) if wanted else \
        REPOSITORY / "build" / name / time.strftime("%Y-%m-%d-%H%M%S")
    folder.mkdir(parents=True, exist_ok=True)
    return folder
