#!/usr/bin/env bash
# Content-Encoding: x-gzip
#
# RFC 9110, section 8.4.1.3: a recipient should take x-gzip for gzip. The manual of Apache's mod_mime gives files that
# end with .gz this coding in its examples.
# Guess: each client that decodes gzip decodes x-gzip.
# Seen: httpx 0.28.1, aiohttp 3.14.5 (Python) and got 14.6.6 (npm) give the compressed bytes, without an error. requests
# 2.34.2 (Python), and undici 7.30.2 and axios 1.21.1 (npm) decode them. All know GZIP.
# Programs on them get the bytes of gzip for a text.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install requests==2.34.2 httpx==0.28.1 aiohttp==3.14.5
cat >ask.py <<'PY'
import asyncio, gzip, http.server, sys, threading
import aiohttp, httpx, requests

library, coding = sys.argv[1:]

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        content = gzip.compress(b"hello")
        self.send_response(200)
        self.send_header("Content-Encoding", coding)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass

server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
address = "http://127.0.0.1:%d/" % server.server_port

async def ask_aiohttp():
    async with aiohttp.ClientSession() as session:
        async with session.get(address) as answer:
            return await answer.read()

if library == "aiohttp":
    content = asyncio.run(ask_aiohttp())
else:
    content = {"requests": requests, "httpx": httpx}[library].get(address).content
print("decoded" if content == b"hello" else "compressed")
PY
npm_install undici@7.30.2 got@14.6.6 axios@1.21.1
cat >ask.mjs <<'JS'
import { createServer } from "http";
import { gzipSync } from "zlib";

const [library, coding] = process.argv.slice(2);
const server = createServer((_, response) => {
    response.setHeader("Content-Encoding", coding);
    response.end(gzipSync("hello"));
});
const clients = {
    undici: async (address) => (await (await import("undici")).fetch(address)).text(),
    got: async (address) => (await (await import("got")).default(address)).body,
    axios: async (address) => (await (await import("axios")).default.get(address)).data,
};
server.listen(0, "127.0.0.1", async () => {
    const content = await clients[library](`http://127.0.0.1:${server.address().port}/`);
    console.log(content === "hello" ? "decoded" : "compressed");
    process.exit();
});
JS
for library in requests httpx aiohttp; do
    seen "$library: GZIP" decoded "$(v/bin/python ask.py $library GZIP)"
done
for library in undici got axios; do
    seen "$library: GZIP" decoded "$(node ask.mjs $library GZIP)"
done
for library in httpx aiohttp; do
    seen "$library: x-gzip" compressed "$(v/bin/python ask.py $library x-gzip)"
done
seen 'got: x-gzip' compressed "$(node ask.mjs got x-gzip)"
seen 'requests: x-gzip' decoded "$(v/bin/python ask.py requests x-gzip)"
for library in undici axios; do
    seen "$library: x-gzip" decoded "$(node ask.mjs $library x-gzip)"
done
