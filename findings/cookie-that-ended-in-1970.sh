#!/usr/bin/env bash
# Set-Cookie: a=1; Expires=Thu, 01-Jan-70 00:00:01 GMT
#
# RFC 6265, section 5.1.1: years from 70 to 99 of two digits are 1970 to 1999, and those from 0 to 69 are 2000 to 2069.
# Section 3.1: a server ends a cookie by a date that is past, and by section 5.3 the client then removes it.
# Guess: each jar of cookies removes the cookie.
# Seen: requests 2.34.2 and httpx 0.28.1 (Python), both of which keep cookies in http.cookiejar of Python 3.11, send it
# on: that module takes 2070, and has since 2020, as it looks for the year that is less than 51 away. aiohttp 3.14.5
# (Python) and tough-cookie 6.1.0 (npm) remove it. With 1970 in four digits requests and httpx do, too.
# A server that ends sessions with this date does not end them for clients on these two.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install requests==2.34.2 httpx==0.28.1 aiohttp==3.14.5
cat >ask.py <<'PY'
import asyncio, http.server, sys, threading
import aiohttp, httpx, requests

library, date = sys.argv[1:]

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        content = (self.headers["Cookie"] or "none").encode()
        self.send_response(200)
        if self.path == "/begin":
            self.send_header("Set-Cookie", "a=1; Path=/")
        if self.path == "/end":
            self.send_header("Set-Cookie", "a=1; Path=/; Expires=" + date)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass

server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
address = "http://127.0.0.1:%d" % server.server_port

async def ask_aiohttp():
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
        for path in "/begin", "/end", "/":
            async with session.get(address + path) as answer:
                text = await answer.text()
        return text

if library == "aiohttp":
    print(asyncio.run(ask_aiohttp()))
else:
    session = requests.Session() if library == "requests" else httpx.Client()
    print([session.get(address + path).text for path in ("/begin", "/end", "/")][-1])
PY
npm_install tough-cookie@6.1.0
cat >ask.js <<'JS'
const { CookieJar } = require("tough-cookie");
const jar = new CookieJar();
jar.setCookieSync("a=1", "http://a.example/");
jar.setCookieSync("a=1; Expires=" + process.argv[2], "http://a.example/");
console.log(jar.getCookieStringSync("http://a.example/") || "none");
JS
SHORT='Thu, 01-Jan-70 00:00:01 GMT'
LONG='Thu, 01-Jan-1970 00:00:01 GMT'
for library in requests httpx; do
    seen "$library: 70" a=1 "$(v/bin/python ask.py $library "$SHORT")"
    seen "$library: 1970" none "$(v/bin/python ask.py $library "$LONG")"
done
seen 'aiohttp: 70' none "$(v/bin/python ask.py aiohttp "$SHORT")"
seen 'tough-cookie: 70' none "$(node ask.js "$SHORT")"
