#!/usr/bin/env bash
# data: {"a":
#
# HTML Standard, 9.2.6 (Interpreting an event stream): at the end of the stream, the last block is dropped, if no empty
# line ends it.
# Guess: clients give whole events only, as the end of the stream may be that of a broken connection.
# Seen: sseclient-py 1.9.0 (Python) gives the cut-off block for an event, and so does sse 2.10.0 of r3labs (Go).
# httpx-sse 0.4.3 (Python) and go-sse 0.12.0 (Go) drop it.
# A server that is stopped, or a proxy whose time for it is over, cuts streams anywhere; a program that uses the first
# two then works on a half.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install httpx-sse==0.4.3 httpx==0.28.1 sseclient-py==1.9.0
cat >read.py <<'PY'
import sys
stream = sys.argv[2].encode().decode("unicode_escape").encode()
if sys.argv[1] == "httpx-sse":
    import httpx, httpx_sse
    answer = httpx.Response(200, headers={"Content-Type": "text/event-stream"}, content=stream)
    with httpx.Client(transport=httpx.MockTransport(lambda request: answer)) as client:
        with httpx_sse.connect_sse(client, "GET", "http://a.example/") as source:
            events = list(source.iter_sse())
else:
    import io, sseclient
    events = list(sseclient.SSEClient(io.BytesIO(stream)).events())
print(*(repr(event.data) for event in events))
PY
CUT='data: {"a":1}\n\ndata: {"a":'
seen 'sseclient-py' "'{\"a\":1}' '{\"a\":'" "$(v/bin/python read.py sseclient-py "$CUT")"
seen 'httpx-sse' "'{\"a\":1}'" "$(v/bin/python read.py httpx-sse "$CUT")"

cat >go.mod <<'GO'
module finding
go 1.26
require (
	github.com/r3labs/sse/v2 v2.10.0
	github.com/tmaxmax/go-sse v0.12.0
)
GO
cat >main.go <<'GO'
package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"time"

	r3labs "github.com/r3labs/sse/v2"
	"github.com/tmaxmax/go-sse"
)

func main() {
	stream, err := strconv.Unquote("`" + strings.ReplaceAll(os.Args[2], `\n`, "\n") + "`")
	if err != nil {
		panic(err)
	}
	if os.Args[1] == "go-sse" {
		for event, err := range sse.Read(strings.NewReader(stream), nil) {
			if err != nil {
				fmt.Println(err)
				return
			}
			fmt.Printf("'%s'\n", event.Data)
		}
		return
	}
	server := httptest.NewServer(http.HandlerFunc(func(answer http.ResponseWriter, request *http.Request) {
		fmt.Fprint(answer, stream)
	}))
	go r3labs.NewClient(server.URL).SubscribeRaw(func(event *r3labs.Event) {
		fmt.Printf("'%s'\n", event.Data)
	})
	time.Sleep(200 * time.Millisecond) // less than it waits before it connects again
}
GO
go mod tidy 2>/dev/null
go build -o read .
seen 'r3labs/sse' "'{\"a\":1}' '{\"a\":'" "$(./read r3labs "$CUT" | paste -sd ' ')"
seen 'go-sse' "'{\"a\":1}'" "$(./read go-sse "$CUT" | paste -sd ' ')"
