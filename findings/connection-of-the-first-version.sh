#!/usr/bin/env bash
# HTTP/1.0 200 OK, Connection: keep-alive, Content-Length: 2; and the same without Connection
#
# RFC 9112, section 9.3: a connection goes on after an answer of HTTP/1.0 that has `keep-alive`, if the client can do that, and
# ends after one that has not. Appendix C.2.2 has the history.
# Guess: a client with a pool asks twice on one connection for the first answer, and on two for the second.
# Seen: httpx 0.28.1 (Python) takes a new connection for both. aiosonic 1.3.3 and dugong 3.8.2 (Python) ask again on the old
# one for both, and dugong even after `Connection: close`. httplib2 0.32.1 and urllib3 2.8.0 (Python) do as the guess.
# Servers and proxies of HTTP/1.0 close such a connection; the second request is lost, or sent twice.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install httpx==0.28.1 aiosonic==1.3.3 dugong==3.8.2 httplib2==0.32.1 urllib3==2.8.0
cat >ask.py <<'PY'
import asyncio, socket, sys, threading
library, version, *fields = sys.argv[1:]
head = "\r\n".join([f"HTTP/{version} 200 OK", "Content-Length: 2", *fields, "", ""])
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
port = listener.getsockname()[1]
threading.Thread(target=accept, daemon=True).start()
address = f"http://127.0.0.1:{port}/"
if library == "httpx":
    import httpx
    with httpx.Client() as client:
        for _ in range(2):
            client.get(address)
elif library == "aiosonic":
    import aiosonic
    async def main():
        async with aiosonic.HTTPClient() as client:
            for _ in range(2):
                await (await client.get(address)).content()
    asyncio.run(main())
elif library == "dugong":
    import dugong
    client = dugong.HTTPConnection("127.0.0.1", port)
    for _ in range(2):
        client.send_request("GET", "/")
        client.read_response()
        client.readall()
elif library == "httplib2":
    import httplib2
    client = httplib2.Http()
    for _ in range(2):
        client.request(address)
else:
    import urllib3
    client = urllib3.PoolManager()
    for _ in range(2):
        client.request("GET", address)
print(len(connections))
PY
# ask LIBRARY VERSION FIELD...: the connections for two requests
ask() {
    timeout 20 v/bin/python -W ignore ask.py "$@"
}
seen 'httpx: 1.1' 1 "$(ask httpx 1.1)"
seen 'httpx: 1.0, keep-alive' 2 "$(ask httpx 1.0 'Connection: keep-alive')"
seen 'httpx: 1.0' 2 "$(ask httpx 1.0)"
for library in aiosonic dugong; do
    seen "$library: 1.0, keep-alive" 1 "$(ask $library 1.0 'Connection: keep-alive')"
    seen "$library: 1.0" 1 "$(ask $library 1.0)"
done
seen 'aiosonic: 1.1, close' 2 "$(ask aiosonic 1.1 'Connection: close')"
seen 'dugong: 1.1, close' 1 "$(ask dugong 1.1 'Connection: close')"
for library in httplib2 urllib3; do
    seen "$library: 1.0, keep-alive" 1 "$(ask $library 1.0 'Connection: keep-alive')"
    seen "$library: 1.0" 2 "$(ask $library 1.0)"
done
