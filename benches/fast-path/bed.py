"""One turn of one server on a fresh bed, by `afpa-netlab bed`."""

import json
import subprocess
import time

import children
from contenders import PORT
from failure import Failure

NOISE = " INFO "  # lines of AFPA's own log


def command(netlab, case, contender, seconds, warm_up, patience):
    """The words; `contender` is None for the reflector, which afpa-netlab brings along."""
    words = [str(netlab), "bed", "--port", str(PORT), "--rounds", "1",
             "--seconds", f"{seconds:g}", "--warm-up", f"{warm_up:g}", "--patience", f"{patience:g}",
             "--steering", case.steering, "--connections", str(case.connections)]
    for path in case.path.split():
        words += ["--path", path]
    if case.browser:
        words += ["--browser", "--visitors", str(case.visitors)]
    if case.active:
        words += ["--active", str(case.active), "--late-acks", "--sources", str(case.sources)]
    if contender is None:
        return words + ["--reflector", str(case.size)]
    words += ["--server", f"{contender.name}={contender.command}"]
    if contender.ready:
        words += ["--ready", f"{contender.name}={contender.ready}"]
    return words


def turn(words, limit, watch=None):
    """What `afpa-netlab` says of the turn."""
    return json.loads(run(words, limit, watch))["turns"][0]


def run(words, limit, watch=None):
    """The output of a command that has to end within `limit` seconds, or else is ended; `watch` is
    called now and then until it does."""
    process = children.start(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        output, errors = wait(process, time.monotonic() + limit, watch)
    finally:
        children.end(process)
    if process.returncode != 0:
        said = [line for line in errors.splitlines() if NOISE not in line]
        raise Failure("\n".join(said[-3:]) or f"status {process.returncode}: {' '.join(words)}")
    return output


def wait(process, deadline, watch):
    while time.monotonic() < deadline:
        try:
            return process.communicate(timeout=0.5)
        except subprocess.TimeoutExpired:
            if watch:
                watch()
    raise Failure(f"this did not end in time: {' '.join(process.args)}")
