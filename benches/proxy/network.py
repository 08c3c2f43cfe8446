"""The networks that proxies are measured in.

*cores*: three network namespaces in a row, clients - proxy - servers, joined by veth pairs. Packets of
the proxy's namespace are processed on the proxy's core, all others on the other core, so that "the
proxy's core" is all of the proxy's work and nothing else.

*loopback*: everybody in one namespace on its loopback, where the kernel does part of each side's packet
work on the other side's core.

The namespaces have no names and belong to this process and its children: the kernel removes them with
the last of those.
"""

import os
import subprocess
import time
from dataclasses import dataclass, field

import bed
import children
from failure import Failure

PROXY, CLIENT = "10.78.1.1", "10.78.1.2"
TO_SERVERS, SERVERS = "10.78.2.1", "10.78.2.2"
DEVICE = "eth0"  # of clients and of servers, in their namespaces
WAIT = 5  # seconds


@dataclass(frozen=True)
class Network:
    name: str
    note: str
    proxy: str    # address on which proxies listen
    servers: str  # address on which servers listen
    at_clients: list = field(default_factory=list)  # words before a command that runs there
    at_servers: list = field(default_factory=list)


def loopback():
    """A namespace with a loopback of its own, entered by this process."""
    note = bed.enter_namespace()["note"]
    return Network("loopback", note, "127.0.0.1", "127.0.0.1")


def cores(ends, proxy_core, other_core):
    """Three namespaces; this process enters the one in the middle."""
    if os.geteuid() != 0:
        raise Failure("the bed 'cores' needs root; --bed loopback does not")
    with bed.WidenedChoice():
        clients, servers = hold(ends), hold(ends)
        bed.unshare_network()
        for inside in ([], clients, servers):
            run(*inside, "sysctl", "-qw", f"net.ipv4.tcp_congestion_control={bed.CONGESTION}")
            run(*inside, "ip", "link", "set", "lo", "up")
    join("clients", PROXY, clients, CLIENT, proxy_core, other_core)
    join("servers", TO_SERVERS, servers, SERVERS, proxy_core, other_core)
    note = (f"namespaces of clients, proxy and servers, packets of the proxy's on core {proxy_core}, "
            f"all others on core {other_core}, congestion control {bed.current()}")
    return Network("cores", note, PROXY, SERVERS, clients, servers)


def hold(ends):
    """A new namespace, kept by a process that does nothing; the words before a command inside."""
    process = children.start(["unshare", "--net", "sleep", "infinity"])
    ends.callback(children.end, process)
    theirs, deadline = f"/proc/{process.pid}/ns/net", time.monotonic() + WAIT
    while os.readlink(theirs) == os.readlink("/proc/self/ns/net"):
        if process.poll() is not None or time.monotonic() > deadline:
            raise Failure("cannot make a network namespace")
        time.sleep(0.01)
    return ["nsenter", f"--target={process.pid}", "--net"]


def join(name, address, inside, other_address, core, other_core):
    """A veth pair: `name` here, DEVICE there."""
    there = inside[1].removeprefix("--target=")
    run("ip", "link", "add", name, "type", "veth", "peer", "name", DEVICE, "netns", there)
    for words, device, own, steered in (([], name, address, core),
                                        (inside, DEVICE, other_address, other_core)):
        # Nothing but our own packets: no neighbour discovery.
        run(*words, "sysctl", "-qw", f"net.ipv6.conf.{device}.disable_ipv6=1")
        run(*words, "ethtool", "-K", device, "tx", "on", "tso", "on", "gso", "on", "gro", "off")
        run(*words, "ip", "address", "add", f"{own}/24", "dev", device)
        run(*words, "ip", "link", "set", device, "up")
        # The folder of interfaces is the namespace's in which /sys was mounted.
        run(*words, "unshare", "--mount", "sh", "-ec",
            f"mount -t sysfs sysfs /sys; for queue in /sys/class/net/{device}/queues/rx-*; do "
            f"echo {1 << steered:x} >$queue/rps_cpus; done")


def run(*words):
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Failure(f"{' '.join(words)}: {(done.stdout + done.stderr).strip()}")
