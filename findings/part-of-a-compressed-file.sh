#!/usr/bin/env bash
# Range: bytes=0-999, and Accept-Encoding: gzip
#
# RFC 9110, section 14.1.2: a byte range is a part of the selected representation, and section 8.4: a content coding
# is a property of that representation. So the range counts the bytes of the gzip form, or the answer is not gzip.
# Guess: a part of the plain file, or the whole in gzip.
# Seen: Tornado 6.6.1 (Python) with compress_response cuts the plain file, and then compresses the part: 206 with
# Content-Encoding: gzip, and a Content-Range that counts plain bytes.
# A client that puts parts together, or a cache that keeps them, joins gzip pieces by the places of the plain bytes.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install tornado==6.6.1
mkdir files
python3 -c 'print("hello " * 500, end="")' >files/a.txt
cat >ask.py <<'PY'
import asyncio, gzip, http.client, sys
import tornado.httpserver, tornado.testing, tornado.web

def ask(port, fields):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.putrequest("GET", "/a.txt", skip_accept_encoding=True)
    for name, value in fields:
        connection.putheader(name, value)
    connection.endheaders()
    return connection.getresponse()

async def main():
    files = ("/(.*)", tornado.web.StaticFileHandler, {"path": "files"})
    app = tornado.web.Application([files], compress_response=True)
    listener, port = tornado.testing.bind_unused_port()
    tornado.httpserver.HTTPServer(app).add_sockets([listener])
    fields = [("Range", "bytes=0-999"), ("Accept-Encoding", sys.argv[1])]
    answer = await asyncio.to_thread(ask, port, fields)
    coding, body = answer.getheader("content-encoding"), answer.read()
    plain = gzip.decompress(body) if coding else body
    print(answer.status, answer.getheader("content-range"), coding, len(plain))

asyncio.run(main())
PY
seen 'Tornado: 0-999, identity' '206 bytes 0-999/3000 None 1000' "$(v/bin/python ask.py identity)"
seen 'Tornado: 0-999, gzip' '206 bytes 0-999/3000 gzip 1000' "$(v/bin/python ask.py gzip)"
