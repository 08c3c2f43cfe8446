"""What is asked for through the proxies, by how many connections."""

import hashlib
import random
from dataclasses import dataclass

import check
from failure import Failure

KB = 1024
MB = 1024 * KB


@dataclass(frozen=True)
class Case:
    name: str
    title: str
    objects: tuple     # (weight, size in bytes, path), in proportion to weights
    connections: int
    metrics: tuple     # names of rounds.METRICS, the most important first
    script: str = ""   # for wrk, instead of one path
    of: str = ""       # open loop: the case whose saturation decides the rate
    share: float = 0   # ... and which share of it is offered; 0: a closed loop

    @property
    def size(self):
        return self.objects[0][1]


TINY, SMALL = (1, 102, "/app/tiny"), (4, 512, "/small.html")
PER_CORE = ("requests_per_core", "requests", "p99")

# The paper's own workload first: responses of 102 bytes from three servers (section 6).
CASES = (
    Case("tiny", "102 B from servers, 64 connections", (TINY,), 64, PER_CORE),
    Case("page", "10 KB from servers, 64 connections", ((1, 10 * KB, "/app/page"),), 64, PER_CORE),
    Case("large", "1 MB from servers, 16 connections", ((1, MB, "/app/large"),), 16,
         ("bytes_per_core", "bytes")),
    Case("mix", "80 % cached 512 B, 20 % 102 B, 64 connections", (SMALL, TINY), 64, PER_CORE,
         script="mix.lua"),
    Case("cached", "cached 512 B alone, 64 connections", (SMALL,), 64, PER_CORE),
)


def at_rate(case, share):
    """The same requests at a rate that does not depend on the answers."""
    title = case.title.rpartition(",")[0]
    return Case(f"{case.name}-{share * 100:.0f}", f"{title}, at {share:.0%} of the slowest's most",
                case.objects, case.connections, ("p99", "p50", "p999", "requests"),
                of=case.name, share=share)


# Turns at a rate for each round of a closed loop, and their seconds.
TURNS, TURN = 4, 0.15

AT_RATES = (*(at_rate(CASES[0], share) for share in (0.3, 0.6, 0.8)), at_rate(CASES[3], 0.6))


def objects():
    """Every file that a case needs: its size, by path."""
    return {path: size for case in CASES for _, size, path in case.objects}


def write_files(root):
    """Writes what servers and proxies serve: random bytes, the same at every run."""
    (root / "app").mkdir(parents=True)
    for path, size in objects().items():
        (root / path.lstrip("/")).write_bytes(random.Random(path).randbytes(size))


def check_all(started, network, root, say):
    """Asks every proxy for every file; the length of each answer's head, by proxy and path."""
    heads = {}
    for proxy in started:
        for path in objects():
            expected = (root / path.lstrip("/")).read_bytes()
            for _ in range(6):  # of every server, twice
                head, body = check.get(proxy.port, path.lstrip("/"), network.proxy)
                if not head.startswith(b"HTTP/1.1 200 "):
                    raise Failure(f"{proxy.name} answered {path} with: {head[:80]!r}")
                if hashlib.sha256(body).digest() != hashlib.sha256(expected).digest():
                    raise Failure(f"{proxy.name} sent {len(body)} bytes for {path}, and they are wrong")
            heads[proxy.name, path] = len(head)
    say(f"answers: right in length and SHA-256 through {', '.join(p.name for p in started)}")
    return heads


def content(case, load, heads, name):
    """Bytes of content among those that came: all but the heads."""
    weights = sum(weight for weight, _, _ in case.objects)
    each = sum(weight * heads[name, path] for weight, _, path in case.objects) / weights
    return load.bytes - load.requests * each
