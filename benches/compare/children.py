"""Processes that do not outlive this one, however it ends."""

import contextlib
import ctypes
import signal
import socket
import subprocess
import time

from failure import Failure

PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None)
START_LIMIT = 10  # seconds


def start(command, **options):
    """Starts a process that the kernel ends (SIGTERM) when this one is gone, SIGKILL included.

    It gets a session of its own: Ctrl-C in a terminal reaches this process, which then ends its
    children in order, and not all of them at once.
    """
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True,
                            preexec_fn=end_with_parent, **options)


def end(process, grace=5):
    """Ends a process by its id: politely, then after `grace` seconds for certain."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(timeout=grace)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    if process.stdout:
        process.stdout.close()


def end_with_parent():
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def wait_until_up(name, process, address, log=None):
    """Returns when it accepts connections; what it wrote to `log` tells why it does not."""
    said = lambda: log.read_text().strip()[-2000:] if log else ""  # noqa: E731
    deadline = time.monotonic() + START_LIMIT
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise Failure(f"{name} ended at once: {said()}")
        with contextlib.suppress(OSError):
            socket.create_connection(address, timeout=1).close()
            return
        time.sleep(0.02)
    raise Failure(f"{name} does not answer after {START_LIMIT} s: {said()}")


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]
