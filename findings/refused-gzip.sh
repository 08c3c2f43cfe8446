#!/usr/bin/env bash
# Accept-Encoding: gzip;q=0
#
# RFC 9110, section 12.4.2: a weight of 0 means "not acceptable". Section 12.5.3 says so of codings, too.
# Guess: a framework that compresses answers sends this one as it is.
# Seen: Starlette 1.10.0 and Flask-Compress 1.25 (Python) compress it. Starlette looks only for the four letters
# anywhere in the field. compression 1.8.2 (npm, for Express) reads the weight.
# So a cache that tells the two requests apart by the rules keeps a gzip answer as the one for clients that refuse
# gzip.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install starlette==1.10.0 flask-compress==1.25
cat >ask.py <<'PY'
import asyncio, sys

TEXT = "hello " * 500

def starlette(coding):
    from starlette.middleware.gzip import GZipMiddleware
    from starlette.responses import PlainTextResponse
    sent = []
    async def send(message):
        sent.append(message)
    scope = {"type": "http", "method": "GET", "path": "/", "headers": [(b"accept-encoding", coding.encode())]}
    asyncio.run(GZipMiddleware(PlainTextResponse(TEXT))(scope, None, send))
    return dict(sent[0]["headers"]).get(b"content-encoding", b"none").decode()

def flask(coding):
    from flask import Flask, Response
    from flask_compress import Compress
    app = Flask("finding")
    Compress(app)
    app.add_url_rule("/", view_func=lambda: Response(TEXT, mimetype="text/plain"))
    answer = app.test_client().get("/", headers={"Accept-Encoding": coding})
    return answer.headers.get("content-encoding", "none")

print(globals()[sys.argv[1]](sys.argv[2]))
PY
for framework in starlette flask; do
    seen "$framework: identity" none "$(v/bin/python ask.py "$framework" identity)"
    seen "$framework: gzip;q=0" gzip "$(v/bin/python ask.py "$framework" 'gzip;q=0')"
done

npm_install compression@1.8.2
cat >ask.js <<'JS'
const http = require("http");
const compress = require("compression")({ threshold: 0 });
const server = http.createServer((request, response) => compress(request, response, () => {
    response.setHeader("content-type", "text/plain");
    response.end("hello ".repeat(500));
}));
server.listen(0, "127.0.0.1", () => {
    const headers = { "accept-encoding": process.argv[2] };
    http.get({ host: "127.0.0.1", port: server.address().port, headers, agent: false }, (answer) => {
        console.log(answer.headers["content-encoding"]);
        answer.resume().on("end", () => server.close());
    });
});
JS
seen 'compression: gzip;q=0' undefined "$(node ask.js 'gzip;q=0')"
