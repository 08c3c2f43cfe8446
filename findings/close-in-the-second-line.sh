#!/usr/bin/env bash
# Connection: TE, and in another line Connection: close
#
# RFC 9110, section 5.3: lines of one field are a list, so that this is `TE, close`, which ends the connection; section 7.6.1 has
# Connection as a list.
# Guess: a client takes a new connection for the next request.
# Seen: Python's http.client looks at the first line alone, so urllib3 2.8.0 and httplib2 0.32.1 ask again on the old one. In
# one line, in either order, they understand `close`. aiohttp 3.14.5 and httpx 0.28.1 (Python) understand both.
# A proxy that adds a line of its own in place of the value hides the end of the connection from these clients.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install urllib3==2.8.0 httplib2==0.32.1 httpx==0.28.1 aiohttp==3.14.5
cat >ask.py <<'PY'
import asyncio, socket, sys, threading
library, *fields = sys.argv[1:]
head = "\r\n".join(["HTTP/1.1 200 OK", "Content-Length: 2", *fields, "", ""])
connections = []

def serve(connection):
    asked = b""
    while part := connection.recv(65536):
        asked += part
        if asked.endswith(b"\r\n\r\n"):
            asked = b""
            connection.sendall(head.encode() + b"ok")

def accept():
    while True:
        connections.append(listener.accept()[0])
        threading.Thread(target=serve, args=[connections[-1]], daemon=True).start()

listener = socket.create_server(("127.0.0.1", 0))
address = f"http://127.0.0.1:{listener.getsockname()[1]}/"
threading.Thread(target=accept, daemon=True).start()
if library == "aiohttp":
    import aiohttp
    async def main():
        async with aiohttp.ClientSession() as client:
            for _ in range(2):
                async with client.get(address) as answer:
                    await answer.read()
    asyncio.run(main())
else:
    if library == "urllib3":
        import urllib3
        pool = urllib3.PoolManager()
        ask = lambda: pool.request("GET", address)
    elif library == "httplib2":
        import httplib2
        client = httplib2.Http()
        ask = lambda: client.request(address)
    else:
        import httpx
        client = httpx.Client()
        ask = lambda: client.get(address)
    for _ in range(2):
        ask()
print(len(connections))
PY
# ask LIBRARY FIELD...: the connections for two requests
ask() {
    timeout 20 v/bin/python -W ignore ask.py "$@"
}
for library in urllib3 httplib2; do
    seen "$library: no Connection" 1 "$(ask $library)"
    seen "$library: TE, close" 2 "$(ask $library 'Connection: TE, close')"
    seen "$library: TE, and close" 1 "$(ask $library 'Connection: TE' 'Connection: close')"
done
for library in httpx aiohttp; do
    seen "$library: no Connection" 1 "$(ask $library)"
    seen "$library: TE, and close" 2 "$(ask $library 'Connection: TE' 'Connection: close')"
done
