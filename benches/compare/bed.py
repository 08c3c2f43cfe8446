"""The network under test: a namespace with nothing but a loopback of its own.

The namespace belongs to this process and its children alone. No name is given to it, so the kernel
removes it with the last of them, however they end: there is nothing to clean up.
"""

import ctypes
import os
import subprocess
from pathlib import Path

CONGESTION = "cubic"
CLONE_NEWNET = 0x40000000
TCP = Path("/proc/sys/net/ipv4")


def enter_namespace():
    """Moves this process into a fresh network namespace whose TCP uses cubic.

    Congestion control matters even on loopback: BBR, the default of some machines, paces, and
    pacing costs most those who send in large pieces. Answers what was set up, for the record.
    Without the right to make a namespace the machine's own loopback is used, and the note says so.
    """
    if os.geteuid() != 0:
        return plain("not root")
    try:
        with WidenedChoice():
            unshare_network()
            subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
            (TCP / "tcp_congestion_control").write_text(CONGESTION)
    except OSError as error:
        return plain(str(error))
    return {
        "namespace": True,
        "congestion_control": current(),
        "loopback_mtu": int(Path("/sys/class/net/lo/mtu").read_text()),
        "note": f"own namespace, congestion control {current()}",
    }


def plain(reason):
    return {
        "namespace": False,
        "congestion_control": current(),
        "loopback_mtu": int(Path("/sys/class/net/lo/mtu").read_text()),
        "note": f"the machine's own loopback, congestion control {current()} ({reason}: "
                f"no namespace; compare such figures only with their like)",
    }


def current():
    return (TCP / "tcp_congestion_control").read_text().strip()


def unshare_network():
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"cannot make a network namespace: {os.strerror(number)}")


class WidenedChoice:
    """While it is entered, the machine allows cubic to its namespaces.

    A namespace other than the first may only choose from tcp_allowed_congestion_control, a list of
    the first one. The file is opened before the namespace is left, for its descriptor keeps meaning
    the first one's; and the list is put back at once: a choice once made stays.
    """

    def __enter__(self):
        self.file = os.open(TCP / "tcp_allowed_congestion_control", os.O_RDWR)
        self.before = os.pread(self.file, 4096, 0)
        if CONGESTION.encode() not in self.before.split():
            os.pwrite(self.file, self.before.strip() + b" " + CONGESTION.encode(), 0)
        return self

    def __exit__(self, *_):
        os.pwrite(self.file, self.before, 0)
        os.close(self.file)
