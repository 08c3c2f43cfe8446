"""What is asked for through the proxies, by how many connections, and whether it comes right."""

import os
import random
import subprocess
from dataclasses import dataclass
from pathlib import Path

import children
import wrk
from failure import Failure

KB = 1024
MB = 1024 * KB
SCRIPTS = Path(__file__).parent


@dataclass(frozen=True)
class Case:
    name: str
    title: str
    path: str
    size: int          # bytes
    connections: int
    metrics: tuple     # names of rounds.METRICS, the most important first
    script: str = ""   # instead of one path


# The paper's own workload first: responses of 102 bytes from three servers (section 6).
CASES = (
    Case("tiny", "102 B from servers, 64 connections", "/app/tiny", 102, 64,
         ("requests_per_core", "requests", "p99")),
    Case("page", "10 KB from servers, 64 connections", "/app/page", 10 * KB, 64,
         ("requests_per_core", "requests", "p99")),
    Case("large", "1 MB from servers, 16 connections", "/app/large", MB, 16,
         ("bytes_per_core", "bytes")),
    Case("mix", "80 % cached 512 B, 20 % 102 B, 64 connections", "/small.html", 512, 64,
         ("requests_per_core", "requests", "p99"), "mix.lua"),
    Case("cached", "cached 512 B alone, 64 connections", "/small.html", 512, 64,
         ("requests_per_core", "requests", "p99")),
)


def write_files(root):
    """Writes what servers and proxies serve: random bytes, the same at every run."""
    (root / "app").mkdir(parents=True)
    files = {}
    for case in CASES:
        if case.path not in files:
            files[case.path] = random.Random(case.path).randbytes(case.size)
            (root / case.path.lstrip("/")).write_bytes(files[case.path])
    return files


def check(started, files, say):
    """Asks every proxy for every file; the length of each answer's head, by proxy and case."""
    from check import get, verify
    heads = {}
    for proxy in started:
        for case in CASES:
            for _ in range(6):  # of every server, twice
                head, body = get(proxy.port, case.path.lstrip("/"))
                verify(proxy.name, _Named(case.path.lstrip("/")), head, body, files[case.path])
            heads[proxy.name, case.name] = len(head)
    say(f"answers: right in length and SHA-256 through {', '.join(p.name for p in started)}")
    return heads


@dataclass(frozen=True)
class _Named:
    file: str


def run(case, port, core, seconds):
    """Loads a proxy for `seconds`. A wrk that does not end in time is ended and is a failure."""
    script = SCRIPTS / case.script if case.script else wrk.SCRIPT
    command = ["taskset", "-c", str(core), "wrk", "--threads", "1", "--connections",
               str(case.connections), "--duration", f"{seconds}s", "--timeout", "10s", "--latency",
               "--script", str(script), f"http://127.0.0.1:{port}{case.path}"]
    process = children.start(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                             env=os.environ | {"SUMMARY": str(wrk.SCRIPT)})
    try:
        output, _ = process.communicate(timeout=seconds + 30)
    except subprocess.TimeoutExpired:
        raise Failure(f"wrk did not end: {' '.join(command)}") from None
    finally:
        children.end(process)
    if process.returncode != 0:
        raise Failure(f"wrk ended with status {process.returncode}: {output.strip()}")
    return wrk.parse(output)
