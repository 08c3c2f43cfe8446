#!/usr/bin/env bash
# FCGI_STDIN "a=1" without CONTENT_LENGTH
#
# RFC 9112, section 6.1: a request in chunks has no length in its header. FastCGI specification, section 5.3: the end of
# the stream FCGI_STDIN is a record without content, so that the length need not be known.
# Guess: PHP-FPM reads the content until that record.
# Seen: PHP-FPM 8.2 gives the program no content at all, and no error; with CONTENT_LENGTH it gives it. Go 1.26 reads
# the content in both cases.
# A gateway has to know the length before it asks PHP: it must keep a chunked request until its end, or refuse it with
# 411.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
servers=()
trap 'kill "${servers[@]}"; rm -rf "$FOLDER"' EXIT

cat >ask.py <<'PY'
import os, socket, struct, sys, time

def record(kind, body):
    return struct.pack(">BBHHBx", 1, kind, 1, len(body), 0) + body

path, *length = sys.argv[1:]
parameters = {"SCRIPT_FILENAME": os.path.abspath("a.php"), "REQUEST_METHOD": "POST", "SERVER_PROTOCOL": "HTTP/1.1",
              "HTTP_HOST": "a.example", "REQUEST_URI": "/", "CONTENT_TYPE": "application/x-www-form-urlencoded"}
if length:
    parameters["CONTENT_LENGTH"] = length[0]
pairs = b"".join(bytes([len(name), len(value)]) + (name + value).encode() for name, value in parameters.items())
while not os.path.exists(path):
    time.sleep(0.05)
connection = socket.socket(socket.AF_UNIX)
connection.connect(path)
content = record(5, b"a=1") + record(5, b"")
connection.sendall(record(1, struct.pack(">H6x", 1)) + record(4, pairs) + record(4, b"") + content)
received = connection.makefile("rb")
output = b""
while head := received.read(8):
    _, kind, _, size, padding = struct.unpack(">BBHHBx", head)
    body = received.read(size + padding)[:size]
    output += body if kind == 6 else b""
print(output.decode().partition("\r\n\r\n")[2])
PY

debian_install php8.2-fpm libapparmor1 libacl1 libxml2 libicu72 libsodium23 libargon2-1
echo '<?php echo "content: ", file_get_contents("php://input"), ", a: ", $_POST["a"] ?? "unknown";' >a.php
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
seen 'PHP-FPM: with CONTENT_LENGTH' 'content: a=1, a: 1' "$(python3 ask.py fpm 3)"
seen 'PHP-FPM: without' 'content: , a: unknown' "$(python3 ask.py fpm)"

cat >go.mod <<'GO'
module finding
go 1.26
GO
cat >main.go <<'GO'
package main

import (
	"fmt"
	"io"
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
		content, err := io.ReadAll(request.Body)
		fmt.Fprintf(answer, "content: %s, error: %v", content, err)
	}))
}
GO
go build -o serve .
./serve &
servers+=($!)
seen 'Go: with CONTENT_LENGTH' 'content: a=1, error: <nil>' "$(python3 ask.py go 3)"
seen 'Go: without' 'content: a=1, error: <nil>' "$(python3 ask.py go)"
