#!/usr/bin/env bash
# retry: 5000
#
# data: x
#
# HTML Standard, 9.2.6 (Interpreting an event stream): an empty line dispatches an event only if there is data. A block
# with nothing but an identifier, a name or a time for retries sets these, and dispatches nothing.
# Guess: each client gives one event, x.
# Seen: httpx-sse 0.4.3 (Python) gives two, the first of them with empty data, for each of the three kinds of block, and
# go-sse 0.12.0 (Go) does for the first two. sseclient-py 1.9.0 (Python) gives one.
# A program that reads the data of each event as JSON fails at the empty one, which browsers never show.
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
cat >go.mod <<'GO'
module finding
go 1.26
require github.com/tmaxmax/go-sse v0.12.0
GO
cat >main.go <<'GO'
package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/tmaxmax/go-sse"
)

func main() {
	stream, _ := strconv.Unquote(`"` + os.Args[1] + `"`)
	var found []string
	for event, err := range sse.Read(strings.NewReader(stream), nil) {
		if err != nil {
			panic(err)
		}
		found = append(found, "'"+event.Data+"'")
	}
	fmt.Println(strings.Join(found, " "))
}
GO
go mod tidy 2>/dev/null
go build -o read .
for field in 'id: 7' 'event: y' 'retry: 5000'; do
    seen "httpx-sse: $field" "'' 'x'" "$(v/bin/python read.py httpx-sse "$field\n\ndata: x\n\n")"
    seen "sseclient-py: $field" "'x'" "$(v/bin/python read.py sseclient-py "$field\n\ndata: x\n\n")"
done
seen 'go-sse: id: 7' "'' 'x'" "$(./read 'id: 7\n\ndata: x\n\n')"
seen 'go-sse: event: y' "'' 'x'" "$(./read 'event: y\n\ndata: x\n\n')"
seen 'go-sse: retry: 5000' "'x'" "$(./read 'retry: 5000\n\ndata: x\n\n')"
