#!/usr/bin/env bash
# w.Header().Set("Connection", "close"), and OPTIONS *, over HTTP/3
#
# RFC 9114, section 4.2: a message with Connection, Keep-Alive or their like is malformed, so a server sends none of them. Go's
# HTTP/2 drops them when a handler sets them.
# Guess: the server for HTTP/3 in Go, which runs the same handlers, drops them, too.
# Seen: github.com/quic-go/quic-go 0.65.0 sends them. Its own client refuses the answer, and aioquic 1.7.2 (Python) closes the
# connection. The handler need not be one's own: Go's ServeMux sets Connection for the target `*`.
# A program that serves HTTP/1.1 and HTTP/3 has to know the version in its handlers, or drop these fields around them.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install aioquic==1.7.2
cat >ask.py <<'PY'
import asyncio, ssl, sys
from aioquic.asyncio.client import connect
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ConnectionTerminated

class Client(QuicConnectionProtocol):
    def __init__(self, *words, **settings):
        super().__init__(*words, **settings)
        self.http = H3Connection(self._quic)
        self.answer = asyncio.get_running_loop().create_future()

    def quic_event_received(self, event):
        if isinstance(event, ConnectionTerminated) and not self.answer.done():
            self.answer.set_result(event.reason_phrase)
        for message in self.http.handle_event(event):
            if isinstance(message, HeadersReceived):
                self.answer.set_result(dict(message.headers)[b":status"].decode())

async def main(port, method, path):
    configuration = QuicConfiguration(alpn_protocols=H3_ALPN, verify_mode=ssl.CERT_NONE)
    async with connect("127.0.0.1", int(port), configuration=configuration, create_protocol=Client) as client:
        fields = {":method": method, ":scheme": "https", ":authority": "a.example", ":path": path}
        client.http.send_headers(0, [(k.encode(), v.encode()) for k, v in fields.items()], end_stream=True)
        client.transmit()
        print(await asyncio.wait_for(client.answer, 10))

asyncio.run(main(*sys.argv[1:]))
PY
cat >go.mod <<'GO'
module finding
go 1.26
require github.com/quic-go/quic-go v0.65.0
GO
cat >main.go <<'GO'
package main

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"

	"github.com/quic-go/quic-go/http3"
)

func main() {
	version, method, path := os.Args[1], os.Args[2], os.Args[3]
	handlers := http.NewServeMux()
	handlers.HandleFunc("/plain", func(w http.ResponseWriter, r *http.Request) {})
	handlers.HandleFunc("/field", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close")
	})
	over2 := httptest.NewUnstartedServer(handlers)
	over2.EnableHTTP2 = true
	over2.StartTLS()
	over3 := http3.Server{Handler: handlers, TLSConfig: http3.ConfigureTLSConfig(over2.TLS)}
	socket, _ := net.ListenPacket("udp", "127.0.0.1:0")
	go over3.Serve(socket)
	_, port, _ := net.SplitHostPort(socket.LocalAddr().String())
	if version == "aioquic" {
		out, _ := exec.Command("v/bin/python", "ask.py", port, method, path).CombinedOutput()
		fmt.Print(string(out))
		return
	}
	client := over2.Client()
	address := over2.URL
	if version == "3" {
		client.Transport = &http3.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
		address = "https://127.0.0.1:" + port
	}
	answer, err := client.Get(address + path)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s %d %q\n", answer.Proto, answer.StatusCode, answer.Header["Connection"])
}
GO
go mod tidy 2>/dev/null
go build -o ask .
ask() {
    timeout 30 ./ask "$@" | sed 's/.*: http3: //'
}
seen 'HTTP/2' 'HTTP/2.0 200 []' "$(ask 2 GET /field)"
seen 'quic-go: without' 'HTTP/3.0 200 []' "$(ask 3 GET /plain)"
seen 'quic-go: Connection' 'invalid response: invalid header field name: "connection"' "$(ask 3 GET /field)"
refused="Header b'connection' is connection-specific"
seen 'quic-go and aioquic: without' 200 "$(ask aioquic GET /plain)"
seen 'quic-go and aioquic: Connection' "$refused" "$(ask aioquic GET /field)"
seen 'quic-go and aioquic: OPTIONS *' "$refused" "$(ask aioquic OPTIONS '*')"
