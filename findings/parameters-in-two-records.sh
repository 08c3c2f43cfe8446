#!/usr/bin/env bash
# FCGI_PARAMS "... \7\3REQUEST" FCGI_PARAMS "_METHODGET ..."
#
# FastCGI specification, sections 3.3 and 5.2: the parameters are a stream, and the records that carry it may end
# anywhere, also within a name.
# Guess: each receiver joins the records before it reads pairs.
# Seen: none of these three does. PHP-FPM 8.2 closes the connection without an answer; node-fastcgi 2.0.0 (npm) and
# flup 1.0.3 (Python) run the program without the parameters, and say nothing to the sender. All three read two records
# that are cut between two pairs. net/http/fcgi of Go 1.26 reads both.
# A gateway has to end a record of parameters where a pair ends, which is always possible below 64 KiB a pair.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
servers=()
trap 'kill "${servers[@]}"; rm -rf "$FOLDER"' EXIT

cat >ask.py <<'PY'
import os, socket, struct, sys, time

def record(kind, body):
    return struct.pack(">BBHHBx", 1, kind, 1, len(body), 0) + body

def pair(name, value):
    return bytes([len(name), len(value)]) + (name + value).encode()

path, cut = sys.argv[1:]
first = pair("SCRIPT_FILENAME", os.path.abspath("a.php")) + pair("SERVER_PROTOCOL", "HTTP/1.1")
second = pair("REQUEST_URI", "/a?b=1") + pair("REQUEST_METHOD", "GET") + pair("HTTP_HOST", "a.example")
both = first + second
at = {"nowhere": len(both), "between": len(first), "within": len(first) + 5}[cut]
parts = [part for part in (both[:at], both[at:]) if part] + [b""]
connection = socket.socket(socket.AF_UNIX)
for _ in range(200):
    try:
        connection.connect(path)
        break
    except OSError:
        time.sleep(0.05)
output = b""
connection.sendall(record(1, struct.pack(">H6x", 1)) + b"".join(record(4, part) for part in parts) + record(5, b""))
try:
    received = connection.makefile("rb")
    while head := received.read(8):
        _, kind, _, size, padding = struct.unpack(">BBHHBx", head)
        body = received.read(size + padding)[:size]
        output += body if kind == 6 else b""
except ConnectionError:
    pass
print(output.decode().partition("\r\n\r\n")[2] or "no answer")
PY
ask() {
    seen "$1: one record" "GET /a?b=1" "$(python3 ask.py "$2" nowhere)"
    seen "$1: two, cut between two pairs" "GET /a?b=1" "$(python3 ask.py "$2" between)"
    seen "$1: two, cut within a pair" "$3" "$(python3 ask.py "$2" within)"
}

debian_install php8.2-fpm libapparmor1 libacl1 libxml2 libicu72 libsodium23 libargon2-1
echo '<?php echo $_SERVER["REQUEST_METHOD"], " ", $_SERVER["REQUEST_URI"];' >a.php
cat >fpm.conf <<CONF
[global]
error_log = $FOLDER/fpm.log
daemonize = no
[a]
user = $(id -un)
listen = $FOLDER/fpm
pm = static
pm.max_children = 1
CONF
root/usr/sbin/php-fpm8.2 --version | head -1
root/usr/sbin/php-fpm8.2 --allow-to-run-as-root --no-php-ini --fpm-config fpm.conf 2>/dev/null &
servers+=($!)
ask PHP-FPM fpm 'no answer'

npm_install node-fastcgi@2.0.0
node -e '
    const answer = (request, response) => response.end(`${request.method} ${request.url}`);
    require("node-fastcgi").createServer(answer).listen("node");' &
servers+=($!)
ask node-fastcgi node 'GET '

pip_install flup==1.0.3
cat >serve.py <<'PY'
from flup.server.fcgi import WSGIServer

def answer(environment, start):
    start("200 OK", [("Content-Type", "text/plain")])
    return [f"{environment['REQUEST_METHOD']} {environment.get('REQUEST_URI', '')}".encode()]

WSGIServer(answer, bindAddress="flup").run()
PY
v/bin/python serve.py 2>/dev/null &
servers+=($!)
ask flup flup 'GET '

cat >go.mod <<'GO'
module finding
go 1.26
GO
cat >main.go <<'GO'
package main

import (
	"fmt"
	"net"
	"net/http"
	"net/http/fcgi"
)

func main() {
	listener, err := net.Listen("unix", "go")
	if err != nil {
		panic(err)
	}
	fcgi.Serve(listener, http.HandlerFunc(func(answer http.ResponseWriter, request *http.Request) {
		fmt.Fprint(answer, request.Method, " ", request.URL.RequestURI())
	}))
}
GO
go build -o serve .
./serve &
servers+=($!)
ask Go go 'GET /a?b=1'
