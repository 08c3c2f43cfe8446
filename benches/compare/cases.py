"""What is asked for: four files, each with the number of connections that asks for it."""

import random
from dataclasses import dataclass

KB = 1024
MB = 1024 * KB


@dataclass(frozen=True)
class Case:
    name: str
    title: str
    file: str
    size: int          # bytes
    connections: int   # kept open by wrk, each with one request in flight
    metrics: tuple     # names of rounds.METRICS, the most important first


# 64 connections keep a server's core busy without hiding its latency behind a long queue. Large
# files need fewer: eight senders of 10 MB already never wait for a client, and more of them would
# measure how well 64 send buffers fit into the processor's cache.
CASES = (
    Case("small", "512 B, 64 connections", "small.html", 512, 64, ("requests", "p99", "p50")),
    Case("page", "4 KB, 64 connections", "page.html", 4 * KB, 64, ("bytes_per_core", "requests")),
    Case("large", "1 MB, 16 connections", "large.bin", MB, 16, ("bytes_per_core", "bytes")),
    Case("huge", "10 MB, 8 connections", "huge.bin", 10 * MB, 8, ("bytes_per_core", "bytes")),
)


def write_files(root):
    """Writes the document root; the bytes by case name.

    The bytes are random, so that no layer can do well by noticing that they are alike, and the
    same at every run, so that runs can be compared.
    """
    root.mkdir(parents=True)
    files = {}
    for case in CASES:
        files[case.name] = random.Random(case.name).randbytes(case.size)
        (root / case.file).write_bytes(files[case.name])
    return files
