#!/usr/bin/env bash
# If-None-Match: the entity tag of an answer with Vary
#
# RFC 9110, section 15.4.5: a 304 has to bring the fields Vary, Cache-Control, ETag and some others if the 200 in its
# place would have brought them.
# Guess: a middleware for gzip names Accept-Encoding in Vary with 304 as with 200.
# Seen: compression 1.8.2 (npm, for Express) and GZipMiddleware of Starlette 1.10.0 (Python) leave Vary out of 304,
# which has no content that they could compress. hapi 21.4.10 (npm) names it.
# A cache that replaces the fields of its stored answer by those of 304, instead of adding them, would forget that the
# answer depends on the coding.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install express@5.3.0 compression@1.8.2 @hapi/hapi@21.4.10
cat >ask.js <<'JS'
const http = require("http");
const TEXT = "hello ".repeat(500);
const apps = {
    async express() {
        const app = require("express")();
        app.use(require("compression")());
        app.get("/", (_, response) => response.type("text").set("etag", '"1"').send(TEXT));
        const server = http.createServer(app);
        await new Promise((done) => server.listen(0, "127.0.0.1", done));
        return server;
    },
    async hapi() {
        const app = require("@hapi/hapi").server({ port: 0, host: "127.0.0.1" });
        app.route({ method: "GET", path: "/", handler: (_, kit) => kit.response(TEXT).type("text/plain").etag("1") });
        await app.start();
        return app.listener;
    },
};
apps[process.argv[2]]().then((server) => {
    const headers = { "accept-encoding": "gzip", "if-none-match": process.argv[3] };
    http.get({ host: "127.0.0.1", port: server.address().port, headers, agent: false }, (answer) => {
        console.log(answer.statusCode, answer.headers.vary);
        process.exit();
    });
});
JS
seen 'Express with compression: another tag' '200 Accept-Encoding' "$(node ask.js express '"2"')"
seen 'Express with compression: this tag' '304 undefined' "$(node ask.js express '"1"')"
seen 'hapi: another tag' '200 accept-encoding' "$(node ask.js hapi '"2"')"
seen 'hapi: this tag' '304 accept-encoding' "$(node ask.js hapi '"1-gzip"')"

pip_install starlette==1.10.0
mkdir files
python3 -c 'print("hello " * 500, end="")' >files/a.txt
cat >ask.py <<'PY'
import asyncio, sys
from starlette.middleware.gzip import GZipMiddleware
from starlette.staticfiles import StaticFiles

def ask(tag):
    sent = []
    async def send(message):
        sent.append(message)
    async def receive():
        await asyncio.Event().wait()
    fields = [(b"accept-encoding", b"gzip"), (b"if-none-match", tag)]
    scope = {"type": "http", "method": "GET", "path": "/a.txt", "root_path": "", "headers": fields}
    asyncio.run(GZipMiddleware(StaticFiles(directory="files"))(scope, receive, send))
    return sent[0]["status"], dict(sent[0]["headers"])

status, fields = ask(b'"2"')
if sys.argv[1] == "this":
    status, fields = ask(fields[b"etag"])
print(status, fields.get(b"vary", b"none").decode())
PY
seen 'Starlette: another tag' '200 Accept-Encoding' "$(v/bin/python ask.py another)"
seen 'Starlette: this tag' '304 none' "$(v/bin/python ask.py this)"
