#!/usr/bin/env bash
# http://a.example/a%3Bb?c=1;d=2
#
# RFC 3986, section 2.2: the semicolon is reserved, and addresses that differ in whether it is encoded are not
# equivalent. Section 2.1: %FF is any byte, of no encoding.
# Guess: libraries that take an address as a text, and give it back, change letters and digits at most.
# Seen: yarl 1.25.1, which aiohttp 3.14.5 asks by, and furl 2.1.4 (Python) make /a;b of /a%3Bb, another path. furl makes
# c=1%3Bd%3D2 of the query, and %EF%BF%BD of %FF, three other bytes. hyperlink 21.0.0, httpx 0.28.1 and requests 2.34.2
# (Python) keep all three.
# A client cannot ask for a file whose name has a semicolon, at a server that reads parameters behind it.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install yarl==1.25.1 furl==2.1.4 hyperlink==21.0.0 httpx==0.28.1 requests==2.34.2 aiohttp==3.14.5
cat >give.py <<'PY'
import asyncio, http.server, sys, threading
import aiohttp, furl, httpx, hyperlink, requests, yarl

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", str(len(self.path)))
        self.end_headers()
        self.wfile.write(self.path.encode())

    def log_message(self, *_):
        pass

async def ask(path):
    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    async with aiohttp.ClientSession() as session:
        async with session.get("http://127.0.0.1:%d%s" % (server.server_port, path)) as answer:
            return await answer.text()

base = "http://a.example"
address = base + sys.argv[2]
text = {
    "yarl": lambda: yarl.URL(address),
    "furl": lambda: furl.furl(address).url,
    "hyperlink": lambda: hyperlink.URL.from_text(address).to_text(),
    "httpx": lambda: httpx.URL(address),
    "requests": lambda: requests.Request("GET", address).prepare().url,
    "aiohttp": lambda: asyncio.run(ask(sys.argv[2])),
}[sys.argv[1]]()
print(str(text).removeprefix(base))
PY
# row LIBRARY OF_PATH OF_QUERY OF_BYTE
row() {
    seen "$1: /a%3Bb" "$2" "$(v/bin/python give.py "$1" /a%3Bb)"
    seen "$1: /?c=1;d=2" "$3" "$(v/bin/python give.py "$1" '/?c=1;d=2')"
    seen "$1: /%FF" "$4" "$(v/bin/python give.py "$1" /%FF)"
}
row yarl '/a;b' '/?c=1;d=2' /%FF
row aiohttp '/a;b' '/?c=1;d=2' /%FF
row furl '/a;b' '/?c=1%3Bd%3D2' /%EF%BF%BD
for library in hyperlink httpx requests; do
    row $library /a%3Bb '/?c=1;d=2' /%FF
done
