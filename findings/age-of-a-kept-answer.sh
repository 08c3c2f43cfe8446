#!/usr/bin/env bash
# Cache-Control: max-age=60 and Age: 100
#
# RFC 9111, section 4.2.3: the age of a stored answer is at least what its Age said when it came. Here it is stale.
# Guess: each cache of a client that goes by Cache-Control reads Age.
# Seen: CacheControl 0.14.4, requests-cache 1.3.3 with cache_control=True (Python) and make-fetch-happen 15.0.6 (npm)
# give out the stored answer without a question. The cache of undici 7.30.2 (npm) asks again.
# Behind a shared cache such clients keep an answer for up to twice its lifetime, whatever Age the shared cache
# sends.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install undici@7.30.2 make-fetch-happen@15.0.6
cat >ask.js <<'JS'
const http = require("http");
let requests = 0;
const server = http.createServer((_, response) => {
    requests += 1;
    response.setHeader("cache-control", "max-age=60");
    response.setHeader("age", process.argv[3]);
    response.end("hello");
});
const clients = {
    undici() {
        const { Agent, interceptors, request } = require("undici");
        const dispatcher = new Agent().compose(interceptors.cache());
        return async (address) => (await request(address, { dispatcher })).body.text();
    },
    "make-fetch-happen"() {
        const fetch = require("make-fetch-happen").defaults({ cachePath: "cache" + process.argv[3] });
        return async (address) => (await fetch(address)).text();
    },
};
server.listen(0, "127.0.0.1", async () => {
    const address = `http://127.0.0.1:${server.address().port}/`;
    const ask = clients[process.argv[2]]();
    await ask(address);
    await ask(address);
    console.log(requests);
    process.exit();
});
JS
for client in undici make-fetch-happen; do
    seen "$client: requests sent, Age: 0" 1 "$(node ask.js $client 0)"
done
seen 'undici: requests sent, Age: 100' 2 "$(node ask.js undici 100)"
seen 'make-fetch-happen: requests sent, Age: 100' 1 "$(node ask.js make-fetch-happen 100)"

pip_install cachecontrol==0.14.4 requests-cache==1.3.3
cat >ask.py <<'PY'
import http.server, sys, threading
import cachecontrol, requests, requests_cache

requests_seen = []

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        requests_seen.append(self.path)
        self.send_response(200)
        for name, value in ("Cache-Control", "max-age=60"), ("Age", sys.argv[2]), ("Content-Length", "5"):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(b"hello")

    def log_message(self, *_):
        pass

server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
if sys.argv[1] == "CacheControl":
    session = cachecontrol.CacheControl(requests.Session())
else:
    session = requests_cache.CachedSession(backend="memory", cache_control=True)
for _ in range(2):
    session.get("http://127.0.0.1:%d/" % server.server_port, timeout=10).content
print(len(requests_seen))
PY
for client in CacheControl requests-cache; do
    seen "$client: requests sent, Age: 0" 1 "$(v/bin/python ask.py $client 0)"
    seen "$client: requests sent, Age: 100" 1 "$(v/bin/python ask.py $client 100)"
done
