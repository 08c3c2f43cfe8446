#!/usr/bin/env bash
# GET /a;v=1, recorded, and GET /a;v=2 in the test
#
# RFC 3986, section 3.3: what stands behind a semicolon is a part of the path, and section 6.2.2 knows no equivalence of
# different paths. A query without an equals sign, such as ?up, is one as well.
# Guess: recorders of HTTP give an answer for the address that it was recorded for.
# Seen: vcrpy 9.4.2 and betamax 0.9.0 (Python) give the recorded answer of /a;v=1 for /a;v=2: they compare what urlparse
# of Python calls the path, which ends at a semicolon. vcrpy gives the answer of /?up for /?down, too, of /?a=1 for
# /?a=1&b=, and of /?a=1&a=2 for /?a=2&a=1; betamax does not.
# A test on them passes with an answer that the server would not give.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install vcrpy==9.4.2 betamax==0.9.0 requests==2.34.2
cat >ask.py <<'PY'
import http.server, os, sys, tempfile, threading
import betamax, requests, vcr

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", str(len(self.path)))
        self.end_headers()
        self.wfile.write(self.path.encode())

    def log_message(self, *_):
        pass

server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
library, *paths = sys.argv[1:]
with tempfile.TemporaryDirectory() as folder:
    for mode, path in zip(("once", "none"), paths):
        session = requests.Session()
        if library == "vcrpy":
            recorder = vcr.use_cassette(folder + "/a.yaml", record_mode=mode)
        else:
            recorder = betamax.Betamax(session, cassette_library_dir=folder).use_cassette("a", record=mode)
        with recorder:
            try:
                print(session.get("http://127.0.0.1:%d%s" % (server.server_port, path)).text, end=" ")
            except (betamax.BetamaxError, vcr.errors.CannotOverwriteExistingCassetteException):
                print("none")
PY
# row RECORDED ASKED OF_VCRPY OF_BETAMAX
row() {
    seen "vcrpy: $1, then $2" "$1 $3" "$(v/bin/python ask.py vcrpy "$1" "$2" | sed 's/ $//')"
    seen "betamax: $1, then $2" "$1 $4" "$(v/bin/python ask.py betamax "$1" "$2" | sed 's/ $//')"
}
row /a /b none none
row '/a;v=1' '/a;v=2' '/a;v=1' '/a;v=1'
row '/?up' '/?down' '/?up' none
row '/?a=1' '/?a=1&b=' '/?a=1' none
row '/?a=1&a=2' '/?a=2&a=1' '/?a=1&a=2' none
