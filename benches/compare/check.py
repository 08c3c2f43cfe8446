"""Whether every server gives the right answer, before anyone asks how fast."""

import hashlib
import socket

from cases import CASES
from failure import Failure


def answers(started, files, say):
    """Asks every server for every file; the length of each answer's head, by server and case.

    A raw socket, because the head's exact length is wanted: it is taken off the bytes that wrk
    counted, so that a talkative server gains nothing from its header fields.
    """
    heads = {}
    for server in started:
        for case in CASES:
            head, body = get(server.port, case.file)
            verify(server.name, case, head, body, files[case.name])
            heads[server.name, case.name] = len(head)
    say(f"answers: right in length and SHA-256 from {', '.join(s.name for s in started)}")
    return heads


def verify(server, case, head, body, expected):
    status = head.split(b"\r\n", 1)[0].decode("latin-1")
    if not status.startswith("HTTP/1.1 200 "):
        raise Failure(f"{server} answered /{case.file} with: {status}")
    if len(body) != len(expected):
        raise Failure(f"{server} sent {len(body)} bytes for /{case.file} of {len(expected)}")
    if hashlib.sha256(body).digest() != hashlib.sha256(expected).digest():
        raise Failure(f"{server} sent wrong bytes for /{case.file}")


def get(port, file, host="127.0.0.1"):
    """Head (blank line included) and body of one answer. The request is wrk's, closed after."""
    request = f"GET /{file} HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n\r\n"
    with socket.create_connection((host, port), timeout=10) as connection:
        connection.sendall(request.encode())
        received = bytearray()
        while piece := connection.recv(1 << 20):
            received += piece
    head, blank, body = bytes(received).partition(b"\r\n\r\n")
    return head + blank, body
