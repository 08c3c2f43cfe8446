#!/usr/bin/env bash
# Set-Cookie: a=1; Path=/
# Set-Cookie: a=2; Path=/x
#
# RFC 6265, section 5.3: a jar holds a cookie for each name, domain and path. Section 5.4: all that match are sent,
# those of longer paths first.
# Guess: a client that asks for /x/y sends `a=2; a=1`.
# Seen: aiohttp 3.14.5 (Python) and cookiejar 2.1.4 (npm), on which superagent stands, send a=2 alone. requests 2.34.2,
# httpx 0.28.1 (Python) and tough-cookie 6.1.0 (npm) send both.
# A server that takes the last of two cookies of one name sees another one from each half of the clients.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install requests==2.34.2 httpx==0.28.1 aiohttp==3.14.5
cat >ask.py <<'PY'
import asyncio, http.server, sys, threading
import aiohttp, httpx, requests

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        content = (self.headers["Cookie"] or "none").encode()
        self.send_response(200)
        if self.path == "/":
            self.send_header("Set-Cookie", "a=1; Path=/")
            self.send_header("Set-Cookie", "a=2; Path=/x")
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
        for path in "/", "/x/y":
            async with session.get(address + path) as answer:
                text = await answer.text()
        return text

if sys.argv[1] == "aiohttp":
    print(asyncio.run(ask_aiohttp()))
else:
    session = requests.Session() if sys.argv[1] == "requests" else httpx.Client()
    print([session.get(address + path).text for path in ("/", "/x/y")][-1])
PY
npm_install tough-cookie@6.1.0 cookiejar@2.1.4
cat >ask.js <<'JS'
const cookies = ["a=1; Path=/", "a=2; Path=/x"];
if (process.argv[2] === "tough-cookie") {
    const jar = new (require("tough-cookie").CookieJar)();
    cookies.forEach((cookie) => jar.setCookieSync(cookie, "http://a.example/"));
    console.log(jar.getCookieStringSync("http://a.example/x/y"));
} else {
    const { CookieAccessInfo, CookieJar } = require("cookiejar");
    const jar = new CookieJar();
    jar.setCookies(cookies, "a.example", "/");
    console.log(jar.getCookies(new CookieAccessInfo("a.example", "/x/y")).toValueString());
}
JS
seen aiohttp a=2 "$(v/bin/python ask.py aiohttp)"
seen cookiejar a=2 "$(node ask.js cookiejar)"
for library in requests httpx; do
    seen $library 'a=2; a=1' "$(v/bin/python ask.py $library)"
done
seen tough-cookie 'a=2; a=1' "$(node ask.js tough-cookie)"
