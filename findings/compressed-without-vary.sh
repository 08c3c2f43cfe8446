#!/usr/bin/env bash
# Content-Encoding: gzip, and no Vary
#
# RFC 9110, section 12.5.5: an origin server that chose an answer by a field of the request should name the field in
# Vary. Section 8.8.3.3: the forms with and without a content coding need different strong entity tags.
# Guess: a library that compresses by Accept-Encoding says Vary: Accept-Encoding, in both forms.
# Seen: Response.enable_compression of aiohttp 3.14.5 (Python) never does, and leaves one strong tag on both forms.
# @fastify/compress 9.2.0 (npm) says it with gzip, and not with the plain form. compression 1.8.2 (Express) says it
# in both.
# A cache in front of the first two may give gzip to a client that cannot read it, or keep the plain form for all. It
# is safe only if it takes Content-Encoding itself for a reason to look at Accept-Encoding.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install aiohttp==3.14.5
cat >ask.py <<'PY'
import asyncio, sys
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

async def handler(request):
    answer = web.Response(text="hello " * 500, headers={"ETag": '"1"'})
    answer.enable_compression()
    return answer

async def ask():
    app = web.Application()
    app.router.add_get("/", handler)
    async with TestClient(TestServer(app), auto_decompress=False) as client:
        found = (await client.get("/", headers={"Accept-Encoding": sys.argv[1]})).headers
        print(*(str(found.get(name)) for name in ("content-encoding", "vary", "etag")))

asyncio.run(ask())
PY
seen 'aiohttp: gzip' 'gzip None "1"' "$(v/bin/python ask.py gzip)"
seen 'aiohttp: identity' 'None None "1"' "$(v/bin/python ask.py identity)"

npm_install fastify@5.12.8 @fastify/compress@9.2.0 compression@1.8.2
cat >ask.js <<'JS'
const http = require("http");
const TEXT = "hello ".repeat(500);
const apps = {
    async fastify() {
        const app = require("fastify")();
        await app.register(require("@fastify/compress"));
        app.get("/", (request, reply) => { reply.type("text/plain").send(TEXT); });
        await app.ready();
        return app.server;
    },
    async compression() {
        const compress = require("compression")();
        return http.createServer((request, response) => compress(request, response, () => {
            response.setHeader("content-type", "text/plain");
            response.end(TEXT);
        }));
    },
};
apps[process.argv[2]]().then((server) => server.listen(0, "127.0.0.1", () => {
    const headers = { "accept-encoding": process.argv[3] };
    http.get({ host: "127.0.0.1", port: server.address().port, headers, agent: false }, (answer) => {
        console.log(answer.headers["content-encoding"], answer.headers.vary);
        answer.resume().on("end", () => process.exit());
    });
}));
JS
seen '@fastify/compress: gzip' 'gzip accept-encoding' "$(node ask.js fastify gzip)"
seen '@fastify/compress: identity' 'undefined undefined' "$(node ask.js fastify identity)"
seen 'compression: gzip' 'gzip Accept-Encoding' "$(node ask.js compression gzip)"
seen 'compression: identity' 'undefined Accept-Encoding' "$(node ask.js compression identity)"
