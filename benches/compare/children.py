"""Processes that do not outlive this one, however it ends."""

import ctypes
import signal
import subprocess

PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None)


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
