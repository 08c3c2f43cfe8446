#!/usr/bin/env bash
# Range: bytes=0-0,2-2, of a file of 5 bytes
#
# RFC 9110, section 14.2: a server may ignore Range; section 15.5.17: 416 says that none of the ranges asked for
# overlaps the file, or that there are too many of them.
# Guess: 206 with two parts, or 200 from a library that knows only one range.
# Seen: Werkzeug 3.1.9 (below Flask) and aiohttp 3.14.5 (Python), which know only one, answer 416 with Content-Range:
# bytes */5, as if the file had no such bytes.
# A reader of PDF files asks so. It works with a cache in front that keeps the file, and fails as soon as a request
# reaches the server: a fault that comes and goes.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install werkzeug==3.1.9 aiohttp==3.14.5
mkdir files
printf hello >files/a.txt
cat >ask.py <<'PY'
import asyncio, sys

def werkzeug(fields):
    from werkzeug.exceptions import HTTPException
    from werkzeug.test import Client
    from werkzeug.utils import send_from_directory
    from werkzeug.wrappers import Request
    def app(environ, start):
        try:
            return send_from_directory(".", "files/a.txt", environ)(environ, start)
        except HTTPException as answer:
            return answer(environ, start)
    found = Client(app).get("/a.txt", headers=fields)
    return found.status_code, found.headers.get("content-range")

def aiohttp(fields):
    from aiohttp import web
    from aiohttp.test_utils import TestClient, TestServer
    async def ask():
        app = web.Application()
        app.router.add_static("/", "files")
        async with TestClient(TestServer(app)) as client:
            found = await client.get("/a.txt", headers=fields)
            return found.status, found.headers.get("content-range")
    return asyncio.run(ask())

print(*globals()[sys.argv[1]]({"Range": sys.argv[2]}))
PY
for library in werkzeug aiohttp; do
    seen "$library: bytes=0-0" '206 bytes 0-0/5' "$(v/bin/python ask.py $library bytes=0-0)"
    seen "$library: bytes=0-0,2-2" '416 bytes */5' "$(v/bin/python ask.py $library bytes=0-0,2-2)"
done
