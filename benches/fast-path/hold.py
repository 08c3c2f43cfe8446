"""Accepts connections and holds them, in as many processes as are asked for.

    python3 hold.py HOST PORT PROCESSES MARK

All listen beside each other on one address (SO_REUSEPORT), so the kernel spreads connections over
them; none ever reads or writes. The file MARK is there as soon as all of them listen.
"""

import os
import resource
import socket
import sys


def main():
    host, port, processes, mark = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    listeners = [listen(host, port) for _ in range(processes)]
    with open(mark, "w", encoding="ascii"):
        pass
    for listener in listeners[1:]:
        if os.fork() == 0:
            hold(listener, listeners)
    hold(listeners[0], listeners)


def listen(host, port):
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    listener.bind((host, port))
    listener.listen(65535)
    return listener


def hold(listener, all_of_them):
    for other in all_of_them:
        if other is not listener:
            other.close()
    held = []
    while True:
        held.append(listener.accept()[0])


if __name__ == "__main__":
    main()
