#!/usr/bin/env bash
# GET /?page=1&draft= and GET /?page=1
#
# RFC 9111, section 2: the key of a stored answer is at least the method and the target URI, and RFC 3986, section
# 6.2.2, knows no equivalence of different queries.
# Guess: a cache that sorts parameters, as some do and say, still tells apart queries with different parameters.
# Seen: requests-cache 1.3.3 (Python) leaves out parameters with an empty value, and sorts the values of one name:
# the second request gets the answer to the first. CacheControl 0.14.4 asks for each.
# Behind such a client, logs of a server show fewer addresses than the program asked for, and `purge` of an address
# in a shared cache does not reach the copy that the program uses.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install cachecontrol==0.14.4 requests-cache==1.3.3
cat >ask.py <<'PY'
import http.server, sys, threading
import cachecontrol, requests, requests_cache

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = self.path.encode()
        self.send_response(200)
        for name, value in ("Cache-Control", "max-age=60"), ("Content-Length", str(len(body))):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass

server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
if sys.argv[1] == "CacheControl":
    session = cachecontrol.CacheControl(requests.Session())
else:
    session = requests_cache.CachedSession(backend="memory", cache_control=True)
for query in sys.argv[2:]:
    answer = session.get("http://127.0.0.1:%d/?%s" % (server.server_port, query), timeout=10)
print(answer.text)
PY
seen 'requests-cache: a=1, then a=2' '/?a=2' "$(v/bin/python ask.py requests-cache 'a=1' 'a=2')"
seen 'requests-cache: a=1&b=, then a=1' '/?a=1&b=' "$(v/bin/python ask.py requests-cache 'a=1&b=' 'a=1')"
seen 'requests-cache: a=1&a=2, then a=2&a=1' '/?a=1&a=2' "$(v/bin/python ask.py requests-cache 'a=1&a=2' 'a=2&a=1')"
seen 'CacheControl: a=1&b=, then a=1' '/?a=1' "$(v/bin/python ask.py CacheControl 'a=1&b=' 'a=1')"
