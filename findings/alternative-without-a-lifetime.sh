#!/usr/bin/env bash
# Alt-Svc: h3=":443"; ma=0
#
# RFC 7838, section 3.1: ma has the seconds for which an alternative is fresh; a client uses none that is not. So a server takes
# HTTP/3 back with ma=0.
# Guess: a client that switches to HTTP/3 by this field stays with TCP at ma=0, and so a second behind ma=1, as it does at clear.
# Seen: urllib3-future 2.25.904 (Python) reads no parameter: it sends packets of QUIC to the alternative in both cases, as with
# ma=60. Where nothing answers there, its request waits for one to two seconds before it takes TCP.
# A server that wants its clients off HTTP/3 sends clear, or leaves the field out, for this one.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install urllib3-future==2.25.904
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout key -out certificate -days 2 -subj /CN=localhost \
    -addext subjectAltName=DNS:localhost 2>/dev/null
cat >ask.py <<'PY'
import http.server, os, socket, ssl, sys, threading, time
import urllib3_future

field, wait = sys.argv[1], int(sys.argv[2])
alternative = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
alternative.bind(("127.0.0.1", 0))
alternative.settimeout(0.2)

class Server(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.send_header("Alt-Svc", field.replace("443", str(alternative.getsockname()[1])))
        self.end_headers()

    def log_message(self, *_):
        pass

server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
context.load_cert_chain("certificate", "key")
server.socket = context.wrap_socket(server.socket, server_side=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
client = urllib3_future.PoolManager(ca_certs="certificate")
client.request("GET", f"https://localhost:{server.server_port}/")
time.sleep(wait)
client.request("GET", f"https://localhost:{server.server_port}/")
try:
    alternative.recv(2048)
    print("QUIC")
except TimeoutError:
    print("TCP")
sys.stdout.flush()
os._exit(0)
PY
ask() {
    timeout 60 v/bin/python ask.py "$@" 2>/dev/null
}
seen 'h3=":443"; ma=60' QUIC "$(ask 'h3=":443"; ma=60' 0)"
seen clear TCP "$(ask clear 0)"
seen 'h3=":443"; ma=0' QUIC "$(ask 'h3=":443"; ma=0' 0)"
seen 'h3=":443"; ma=1, behind two seconds' QUIC "$(ask 'h3=":443"; ma=1' 2)"
