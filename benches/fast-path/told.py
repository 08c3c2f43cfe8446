"""What a running `afpa serve` or `afpa attach` tells on its control socket.

    python3 told.py SOCKET      prints how many requests the kernel has answered
"""

import json
import socket
import sys

REQUEST = b"GET /stats HTTP/1.1\r\nHost: afpa\r\nConnection: close\r\n\r\n"


def statistics(path):
    """All of it; None when nobody listens there, or ends meanwhile."""
    received = b""
    try:
        with socket.socket(socket.AF_UNIX) as control:
            control.settimeout(5)
            control.connect(str(path))
            control.sendall(REQUEST)
            while piece := control.recv(1 << 16):
                received += piece
        return json.loads(received.partition(b"\r\n\r\n")[2])
    except (OSError, ValueError):
        return None


def answers(path):
    """Requests that the kernel answered so far."""
    told = statistics(path) or {}
    return told["fast_path"].get("answers", 0) if "fast_path" in told else told.get("answered", 0)


if __name__ == "__main__":
    print(answers(sys.argv[1]))
