#!/usr/bin/env bash
# WWW-Authenticate: Digest realm="a", nonce="b", qop="auth", algorithm=SHA-512-256
#
# RFC 7616, section 6.1: the registry of algorithms has MD5, SHA-256 and SHA-512-256, each with -sess, too. It has no
# SHA-512. Section 3.9.2 has an example with SHA-512-256.
# Guess: a client that knows more than MD5 and SHA-256 knows the third one.
# Seen: requests 2.34.2, httpx 0.28.1 and aiohttp 3.14.5 (Python) have SHA-512, which the RFC has not, and lack
# SHA-512-256: requests gives the answer 401, httpx a KeyError and aiohttp an error of its own.
# A server that offers the strongest algorithm of the RFC alone has no client among the three.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install requests==2.34.2 httpx==0.28.1 aiohttp==3.14.5
cat >ask.py <<'PY'
import asyncio, http.server, sys, threading
import aiohttp, httpx, requests

library, algorithm = sys.argv[1:]

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if "Authorization" in self.headers else 401)
        challenge = 'Digest realm="a", nonce="b", qop="auth", algorithm=' + algorithm
        self.send_header("WWW-Authenticate", challenge)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass

server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
address = "http://127.0.0.1:%d/" % server.server_port

async def ask_aiohttp():
    login = aiohttp.DigestAuthMiddleware("user", "password")
    async with aiohttp.ClientSession(middlewares=(login,)) as session:
        async with session.get(address) as answer:
            return answer.status

try:
    if library == "requests":
        print(requests.get(address, auth=requests.auth.HTTPDigestAuth("user", "password")).status_code)
    elif library == "httpx":
        print(httpx.get(address, auth=httpx.DigestAuth("user", "password")).status_code)
    else:
        print(asyncio.run(ask_aiohttp()))
except (KeyError, aiohttp.ClientError) as error:
    print(type(error).__name__)
PY
for library in requests httpx aiohttp; do
    seen "$library: SHA-256" 200 "$(v/bin/python ask.py $library SHA-256)"
    seen "$library: SHA-512" 200 "$(v/bin/python ask.py $library SHA-512)"
done
seen 'requests: SHA-512-256' 401 "$(v/bin/python ask.py requests SHA-512-256)"
seen 'httpx: SHA-512-256' KeyError "$(v/bin/python ask.py httpx SHA-512-256)"
seen 'aiohttp: SHA-512-256' ClientError "$(v/bin/python ask.py aiohttp SHA-512-256)"
