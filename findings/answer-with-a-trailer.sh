#!/usr/bin/env bash
# Transfer-Encoding: chunked, with a trailer section or a chunk extension
#
# RFC 9112, section 7.1.2: a recipient has to be able to read a chunked answer with a trailer section, and may drop
# it; section 7.1.1: it has to ignore chunk extensions that it does not know.
# Guess: each client gives the content, and passes over the rest.
# Seen: SimpleAsyncHTTPClient of Tornado 6.6.1 (Python) closes the connection at either, and reports 599. http.client
# of Python 3.11 passes over both.
# A server that adds a trailer (a checksum, Server-Timing) works with other clients, and loses this one. A proxy that
# drops trailers for those that do not say TE: trailers (RFC 9110, section 10.1.4) is on the safe side.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install tornado==6.6.1
cat >ask.py <<'PY'
import asyncio, http.client, logging, sys, threading, socket
from tornado.httpclient import HTTPClientError
from tornado.simple_httpclient import SimpleAsyncHTTPClient

extension = b";a=b" if "extension" in sys.argv else b""
trailer = b"X-Sum: 1\r\n" if "trailer" in sys.argv else b""
listener = socket.create_server(("127.0.0.1", 0))
logging.disable()

def answer():
    connection, _ = listener.accept()
    while not connection.recv(65536).endswith(b"\r\n\r\n"):
        pass
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    connection.sendall(head + b"5" + extension + b"\r\nhello\r\n0\r\n" + trailer + b"\r\n")
    connection.close()

async def tornado(port):
    try:
        found = await SimpleAsyncHTTPClient().fetch("http://127.0.0.1:%d/" % port)
        return found.code, found.body.decode()
    except HTTPClientError as error:
        return error.code, error.message

async def python(port):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("GET", "/")
    found = connection.getresponse()
    return found.status, found.read().decode()

threading.Thread(target=answer, daemon=True).start()
print(*asyncio.run(globals()[sys.argv[1]](listener.getsockname()[1])))
PY
seen 'Tornado: chunks' '200 hello' "$(v/bin/python ask.py tornado)"
seen 'Tornado: a chunk extension' '599 Connection closed' "$(v/bin/python ask.py tornado extension)"
seen 'Tornado: a trailer section' '599 Connection closed' "$(v/bin/python ask.py tornado trailer)"
seen 'http.client: a chunk extension' '200 hello' "$(v/bin/python ask.py python extension)"
seen 'http.client: a trailer section' '200 hello' "$(v/bin/python ask.py python trailer)"
