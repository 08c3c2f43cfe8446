#!/usr/bin/env bash
# HTTP/1.1 103 Early Hints, then HTTP/1.1 200 OK
#
# RFC 9110, section 15.2: a client has to be able to read one or more 1xx responses before the final one, even if it
# does not expect any; it may ignore them.
# Guess: each client passes over 103, or hands it to those who ask for it.
# Seen: requests 2.34.2, and all else on http.client of Python 3.11, knows only 100: its answer is 103 with no
# content, and the real one is never read. httpx 0.28.1 gives 200.
# So a server that sends 103 to clients that did not ask for it (a browser says Sec-Fetch-Mode: navigate) breaks
# scripts.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install requests==2.34.2 httpx==0.28.1
cat >ask.py <<'PY'
import socket, sys, threading
import httpx, requests

listener = socket.create_server(("127.0.0.1", 0))
hints = b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n" if sys.argv[2] == "103" else b""

def answer():
    connection, _ = listener.accept()
    while not connection.recv(65536).endswith(b"\r\n\r\n"):
        pass
    connection.sendall(hints + b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello")
    connection.close()

threading.Thread(target=answer, daemon=True).start()
client = {"requests": requests, "httpx": httpx}[sys.argv[1]]
found = client.get("http://127.0.0.1:%d/" % listener.getsockname()[1], timeout=10)
print(found.status_code, repr(found.text))
PY
v/bin/python --version
seen 'requests: 200 alone' "200 'hello'" "$(v/bin/python ask.py requests 200)"
seen 'requests: 103, then 200' "103 ''" "$(v/bin/python ask.py requests 103)"
seen 'httpx: 103, then 200' "200 'hello'" "$(v/bin/python ask.py httpx 103)"
