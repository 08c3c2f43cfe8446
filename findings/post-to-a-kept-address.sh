#!/usr/bin/env bash
# GET /, POST /, GET /
#
# RFC 9111, section 4.4: a cache has to invalidate what it stored for an address when a request with an unsafe method
# to that address succeeds.
# Guess: each cache of a client does so, at least for POST, PUT and DELETE.
# Seen: CacheControl 0.14.4 (Python) does so for PUT, PATCH and DELETE, and not for POST. requests-cache 1.3.3 with
# cache_control=True does so for none.
# So the user of a form goes on seeing the old page for its whole lifetime, although each cache on the way gave it
# up. Only a short max-age, or no-cache, helps that: clearing a shared cache does not.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install cachecontrol==0.14.4 requests-cache==1.3.3
cat >ask.py <<'PY'
import http.server, sys, threading
import cachecontrol, requests, requests_cache

class Handler(http.server.BaseHTTPRequestHandler):
    count = 0

    def answer(self):
        Handler.count += 1
        self.send_response(200)
        for name, value in ("Cache-Control", "max-age=60"), ("Content-Length", "1"):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(b"%d" % Handler.count)

    do_GET = do_POST = do_PUT = do_DELETE = answer

    def log_message(self, *_):
        pass

server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
if sys.argv[1] == "CacheControl":
    session = cachecontrol.CacheControl(requests.Session())
else:
    session = requests_cache.CachedSession(backend="memory", cache_control=True)
for method in "GET", sys.argv[2], "GET":
    answer = session.request(method, "http://127.0.0.1:%d/" % server.server_port, timeout=10)
print(answer.text)
PY
seen 'CacheControl: GET, PUT, GET gives answer' 3 "$(v/bin/python ask.py CacheControl PUT)"
seen 'CacheControl: GET, POST, GET gives answer' 1 "$(v/bin/python ask.py CacheControl POST)"
seen 'requests-cache: GET, PUT, GET gives answer' 1 "$(v/bin/python ask.py requests-cache PUT)"
seen 'requests-cache: GET, POST, GET gives answer' 1 "$(v/bin/python ask.py requests-cache POST)"
