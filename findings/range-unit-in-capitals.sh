#!/usr/bin/env bash
# Range: Bytes=0-0
#
# RFC 9110, section 14.1: the names of range units are case-insensitive; section 14.2: a Range with a unit that the
# server does not know is to be ignored.
# Guess: 206, or 200 from a server that compares the name byte by byte.
# Seen: Go 1.26 (http.ServeContent, http.FileServer) answers 416, which says that the file has no such bytes, without
# the Content-Range by which a client could learn its length.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

cat >go.mod <<'GO'
module finding
go 1.26
GO
cat >main.go <<'GO'
package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"time"
)

func main() {
	request := httptest.NewRequest("GET", "/", nil)
	request.Header.Set("Range", os.Args[1])
	answer := httptest.NewRecorder()
	http.ServeContent(answer, request, "a.txt", time.Unix(1e9, 0), strings.NewReader("hello"))
	fmt.Printf("%d %q\n", answer.Code, answer.Header().Get("Content-Range"))
}
GO
go build -o ask .
echo "$(go version)"
seen 'Go: bytes=0-0' '206 "bytes 0-0/5"' "$(./ask 'bytes=0-0')"
seen 'Go: bytes=5-' '416 "bytes */5"' "$(./ask 'bytes=5-')"
seen 'Go: Bytes=0-0' '416 ""' "$(./ask 'Bytes=0-0')"
seen 'Go: lines=0-0' '416 ""' "$(./ask 'lines=0-0')"
