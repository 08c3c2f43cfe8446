#!/usr/bin/env bash
# EF BB BF "data: a"
#
# HTML Standard, 9.2.5 (Parsing an event stream): a stream may begin with one byte order mark, U+FEFF, which does not
# count.
# Guess: clients find the first event, with the mark and without it.
# Seen: httpx-sse 0.4.3 and sseclient-py 1.9.0 (both Python) lose the first event, as they take the mark for a part of
# the name of its field. go-sse 0.12.0 (Go) finds it.
# A stream of one event, as some answers are, is then empty, without an error.
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
TWO='data: a\n\ndata: b\n\n'
for library in httpx-sse sseclient-py; do
    seen "$library" "'a' 'b'" "$(v/bin/python read.py "$library" "$TWO")"
    seen "$library, with the mark" "'b'" "$(v/bin/python read.py "$library" "\ufeff$TWO")"
done
seen 'go-sse' "'a' 'b'" "$(./read "$TWO")"
seen 'go-sse, with the mark' "'a' 'b'" "$(./read "\ufeff$TWO")"
