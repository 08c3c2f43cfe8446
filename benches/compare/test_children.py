"""Nothing that a comparison started is left when it is gone."""

import signal
import subprocess
import sys
import time
import unittest
from pathlib import Path

import children

PARENT = "import children, time; print(children.start(['sleep', '60']).pid, flush=True); time.sleep(60)"


class Children(unittest.TestCase):
    def test_a_killed_parent_takes_its_children_along(self):
        with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True,
                              cwd=Path(children.__file__).parent) as parent:
            child = int(parent.stdout.readline())
            self.assertTrue(alive(child))
            parent.send_signal(signal.SIGKILL)
            parent.wait()
        self.assertTrue(eventually(lambda: not alive(child)))

    def test_end_is_certain_for_those_who_ignore_it(self):
        stubborn = children.start(["sh", "-c", "trap '' TERM; echo ready; while :; do sleep 1; done"],
                                  stdout=subprocess.PIPE)
        stubborn.stdout.readline()
        children.end(stubborn, grace=0.1)
        self.assertEqual(stubborn.returncode, -signal.SIGKILL)

    def test_end_twice_is_harmless(self):
        done = children.start(["true"])
        children.end(done)
        children.end(done)


def alive(pid):
    """Running, and not only waiting for someone to ask how it ended."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return stat[stat.rindex(")") + 2] != "Z"


def eventually(condition, limit=5):
    deadline = time.monotonic() + limit
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)
    return condition()


if __name__ == "__main__":
    unittest.main()
