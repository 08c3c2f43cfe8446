#!/usr/bin/env bash
# WriteHeader(103), then WriteHeader(200), behind FastCGI
#
# RFC 9110, section 15.2: 1xx is interim, and a final status follows. http.ResponseWriter of Go says the same: any
# number of 1xx, then one of the others. RFC 3875, section 6.3.3, knows one Status in an answer.
# Guess: net/http/fcgi of Go passes over the hints, and gives Status: 200.
# Seen: Go 1.26 gives Status: 103 with the content of the final answer, and drops the 200. It also gives the content in
# answer to HEAD, which RFC 3875, section 4.3.3, leaves to the server in front to discard.
# So a program that works by itself fails behind FastCGI. A gateway has to treat a Status below 200 as an error; if it
# passes the hints on, its client waits for a final answer that never comes.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

cat >go.mod <<'GO'
module finding
go 1.26
GO
cat >main.go <<'GO'
package main

import (
	"io"
	"net"
	"net/http"
	"net/http/fcgi"
)

func main() {
	listener, err := net.Listen("unix", "socket")
	if err != nil {
		panic(err)
	}
	fcgi.Serve(listener, http.HandlerFunc(func(answer http.ResponseWriter, request *http.Request) {
		if request.URL.Path == "/hints" {
			answer.WriteHeader(http.StatusEarlyHints)
		}
		answer.WriteHeader(http.StatusOK)
		io.WriteString(answer, "hello")
	}))
}
GO
go build -o serve .
./serve &
server=$!
trap 'kill $server; rm -rf "$FOLDER"' EXIT
cat >ask.py <<'PY'
import os, socket, struct, sys, time

def record(kind, body):
    return struct.pack(">BBHHBx", 1, kind, 1, len(body), 0) + body

method, path = sys.argv[1:]
parameters = {"REQUEST_METHOD": method, "REQUEST_URI": path, "SERVER_PROTOCOL": "HTTP/1.1", "HTTP_HOST": "a.example"}
pairs = b"".join(bytes([len(name), len(value)]) + (name + value).encode() for name, value in parameters.items())
connection = socket.socket(socket.AF_UNIX)
while not os.path.exists("socket"):
    time.sleep(0.05)
connection.connect("socket")
connection.sendall(record(1, struct.pack(">H6x", 1)) + record(4, pairs) + record(4, b"") + record(5, b""))
received = connection.makefile("rb")
output = b""
while head := received.read(8):
    _, kind, _, size, padding = struct.unpack(">BBHHBx", head)
    body = received.read(size + padding)[:size]
    if kind == 6:
        output += body
fields, content = output.decode().split("\r\n\r\n", 1)
print(fields.split("\r\n")[0], "/", content)
PY
go version
seen 'Go, FastCGI: GET' 'Status: 200 OK / hello' "$(python3 ask.py GET /)"
seen 'Go, FastCGI: GET, with hints' 'Status: 103 Early Hints / hello' "$(python3 ask.py GET /hints)"
seen 'Go, FastCGI: HEAD' 'Status: 200 OK / hello' "$(python3 ask.py HEAD /)"
