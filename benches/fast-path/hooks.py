"""Programs at an interface's tcx hooks, there and not, as often as one likes.

What a process has attached is taken from it, and its programs, which it holds still, are put there and taken away:
nothing else changes, neither the server nor its connections nor where their memory lies.
"""

import contextlib
import ctypes
import os
import platform
import socket
import struct
from pathlib import Path

from failure import Failure
from programs import fields

BPF = {"x86_64": 321, "aarch64": 280}  # the system call
PROG_LOAD, PROG_ATTACH, PROG_DETACH, PROG_FD, LINK_FD, LINK_DETACH = 5, 8, 9, 13, 30, 34
SCHED_CLS = 3
HOOKS = {"ingress": 46, "egress": 47}  # enum bpf_attach_type
LIBC = ctypes.CDLL(None, use_errno=True)
# Return TCX_NEXT.
NOTHING = struct.pack("<BBhi", 0xb7, 0, 0, -1) + struct.pack("<BBhi", 0x95, 0, 0, 0)


class Namespace:
    """The network namespace of a process, while it is entered. To be left before the process ends: whoever made the
    namespace ends what is in it."""

    def __init__(self, pid):
        self.pid = pid

    def __enter__(self):
        self.home = os.open("/proc/self/ns/net", os.O_RDONLY)
        enter(os.open(f"/proc/{self.pid}/ns/net", os.O_RDONLY))

    def __exit__(self, *_):
        enter(self.home)


class Hooks:
    """Those of the one interface beside `lo`. Belongs to the namespace it is made in."""

    def __init__(self):
        self.interface = next(name for _, name in socket.if_nameindex() if name != "lo")
        self.index, self.there, self.programs = socket.if_nametoindex(self.interface), [], []

    def take(self, pid, nothing):
        """From here on what the process has attached comes and goes by `put`; or programs that do nothing do."""
        links = [link for link in links_of(pid) if link["ifindex"] == self.index]
        if {link["hook"] for link in links} != set(HOOKS):
            raise Failure(f"process {pid} is not at both hooks of {self.interface}")
        for link in links:
            hook = HOOKS[link["hook"]]
            self.programs.append((load_nothing(hook) if nothing else bpf(PROG_FD, "I", link["program"]), hook))
            bpf(LINK_DETACH, "I", bpf(LINK_FD, "I", link["link"]))

    def put(self, programs):
        """These are there, and no others."""
        for program, hook in self.there:
            bpf(PROG_DETACH, "IIII", self.index, program, hook, 0)
        for program, hook in programs:
            bpf(PROG_ATTACH, "IIII", self.index, program, hook, 0)
        self.there = programs

    def sent(self):
        """Bytes that left by the interface."""
        return sent(Path("/proc/thread-self/net/dev").read_text(), self.interface)


def sent(devices, interface):
    line = next(line for line in devices.splitlines() if line.strip().startswith(f"{interface}:"))
    return int(line.partition(":")[2].split()[8])


def links_of(pid):
    """What a process has attached to tcx hooks; nothing, if it is gone."""
    found = []
    with contextlib.suppress(OSError):
        for entry in Path(f"/proc/{pid}/fdinfo").iterdir():
            with contextlib.suppress(FileNotFoundError):  # closed meanwhile
                found.append(parse(entry.read_text()))
    return [link for link in found if link]


def parse(text):
    """A link to a tcx hook, of what the kernel tells of a descriptor."""
    told = fields(text)
    if told.get("link_type") != "tcx":
        return None
    hook = next((hook for hook in HOOKS if hook in told["attach_type"]), None)
    return {"link": int(told["link_id"]), "program": int(told["prog_id"]),
            "ifindex": int(told["ifindex"]), "hook": hook}


def load_nothing(hook):
    instructions, license = ctypes.create_string_buffer(NOTHING), ctypes.create_string_buffer(b"GPL")
    return bpf(PROG_LOAD, "IIQQIIQII16sII", SCHED_CLS, len(NOTHING) // 8, ctypes.addressof(instructions),
               ctypes.addressof(license), 0, 0, 0, 0, 0, b"nothing", 0, hook)


def bpf(what, layout, *values):
    attributes = ctypes.create_string_buffer(struct.pack("<" + layout, *values), 128)
    result = LIBC.syscall(BPF[platform.machine()], what, attributes, len(attributes))
    if result < 0:
        raise OSError(ctypes.get_errno(), f"bpf({what}): {os.strerror(ctypes.get_errno())}")
    return result


def enter(namespace):
    if LIBC.setns(namespace, 0) != 0:
        raise OSError(ctypes.get_errno(), "setns")
    os.close(namespace)
