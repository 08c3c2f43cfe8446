"""How long an old version is given after a file was written and closed, while the server is busy.

    coherence.py HOST PORT FILE PATH CHANGES NETLAB CONTROL

Runs in the client's namespace. The generator asks for the object as fast as it can; beside it a
reader asks over one ordinary connection and writes down what it was given, and when. FILE is
overwritten in place with a new version of the same length, CHANGES times. Prints JSON.
"""

import json
import multiprocessing
import os
import socket
import subprocess
import sys
import time

from told import answers

LENGTH = 512
PAUSE = 0.02  # between two changes; many times what a change takes to be seen
CLIENT_CORE = 1


def main():
    host, port, file, path = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
    changes, netlab, control = int(sys.argv[5]), sys.argv[6], sys.argv[7]
    os.sched_setaffinity(0, {CLIENT_CORE})
    write(file, 0)
    warm(host, port, path, control)
    before = answers(control)
    seconds = changes * PAUSE + 2
    load = subprocess.Popen(
        [netlab, "load", "--to", f"{host}:{port}", "--path", path, "--warm-up", "0.3",
         "--seconds", f"{seconds:g}", "--source", source(host, port)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    # Reader and writer go before the generator's packet work, or their own waiting would be measured.
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    stop, seen = multiprocessing.Event(), multiprocessing.Queue()
    reader = multiprocessing.Process(target=read, args=(host, port, path, stop, seen))
    reader.start()
    time.sleep(1)
    closed = change(file, changes)
    time.sleep(0.3)
    stop.set()
    record = seen.get()
    reader.join()
    output, errors = load.communicate(timeout=seconds + 30)
    if load.returncode != 0:
        sys.exit(f"coherence: the load failed: {errors.strip()}")
    result = judge(closed, record)
    loaded = json.loads(output)
    result["load"] = {"rate": loaded["requests_per_second"], "errors": loaded["errors"]}
    result["from_kernel"] = answers(control) - before
    print(json.dumps(result))


def judge(closed, record):
    """`closed[n]`: when version n was complete; the record: (sent, arrived, version), in order."""
    delays = []
    for number, since in enumerate(closed[1:], 1):
        stale = [arrived - since for sent, arrived, version in record
                 if sent > since and version < number]
        delays.append(max(stale, default=0.0))
    newest = backwards = 0
    for _, _, version in record:
        backwards += version < newest
        newest = max(newest, version)
    delays.sort()
    return {"changes": len(delays), "answers": len(record), "backwards": backwards,
            "last_seen": newest, "p50": at(delays, 0.5), "p99": at(delays, 0.99), "most": delays[-1]}


def at(ordered, share):
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def change(file, changes):
    closed = [time.monotonic()]
    for number in range(1, changes + 1):
        time.sleep(PAUSE)
        write(file, number)
        closed.append(time.monotonic())
    return closed


def write(file, number):
    """In place and in one piece: no reader can see a part of it."""
    descriptor = os.open(file, os.O_WRONLY)
    os.write(descriptor, b"%0*d" % (LENGTH, number))
    os.close(descriptor)


def read(host, port, path, stop, seen):
    connection = socket.create_connection((host, port))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    record = []
    while not stop.is_set():
        sent = time.monotonic()
        version = get(connection, host, path)
        record.append((sent, time.monotonic(), version))
    seen.put(record)


def get(connection, host, path):
    connection.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    received = b""
    while (end := received.find(b"\r\n\r\n")) < 0 or len(received) < end + 4 + LENGTH:
        piece = connection.recv(65536)
        if not piece:
            sys.exit("coherence: the server closed the reader's connection")
        received += piece
    if not received.startswith(b"HTTP/1.1 200 "):
        sys.exit(f"coherence: {received[:40]!r}")
    return int(received[end + 4:])


def warm(host, port, path, control):
    """Until the kernel answers."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            with socket.create_connection((host, port), timeout=1) as connection:
                before = answers(control)
                get(connection, host, path)
                if answers(control) > before:
                    return
        except OSError:
            pass
        time.sleep(0.05)
    sys.exit("coherence: the kernel does not answer")


def source(host, port):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((host, port))
        return probe.getsockname()[0]


if __name__ == "__main__":
    main()
