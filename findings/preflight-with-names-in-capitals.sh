#!/usr/bin/env bash
# Access-Control-Request-Headers: X-Color, X-Age
#
# RFC 9110, sections 5.1 and 5.6.1: names of fields have no case, their lists may have blanks, and order means nothing
# here. Browsers send lower case, sorted (Fetch standard, "CORS-unsafe request-header names"); other clients need not.
# Guess: a server that allows both names allows them in any case and order.
# Seen: rs/cors 1.11.1 (Go) refuses capitals and any order but that of the alphabet; the answer is 204 all the same,
# without the fields of CORS. One blank after the comma is allowed, two are not.
# A proxy that writes the field anew has to keep it as browsers write it; a probe by hand with capitals tells nothing.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

cat >go.mod <<'GO'
module finding
go 1.26
require github.com/rs/cors v1.11.1
GO
cat >main.go <<'GO'
package main

import (
	"cmp"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"

	"github.com/rs/cors"
)

func main() {
	options := cors.Options{
		AllowedOrigins: []string{"https://a.example"},
		AllowedMethods: []string{http.MethodPut},
		AllowedHeaders: []string{"X-Age", "X-Color"},
	}
	request := httptest.NewRequest(http.MethodOptions, "/", nil)
	request.Header.Set("Origin", "https://a.example")
	request.Header.Set("Access-Control-Request-Method", http.MethodPut)
	request.Header.Set("Access-Control-Request-Headers", os.Args[1])
	answer := httptest.NewRecorder()
	cors.New(options).Handler(http.NotFoundHandler()).ServeHTTP(answer, request)
	fmt.Println(answer.Code, cmp.Or(answer.Header().Get("Access-Control-Allow-Origin"), "none"))
}
GO
go mod tidy 2>/dev/null
go build -o ask .
seen 'x-age,x-color' '204 https://a.example' "$(./ask x-age,x-color)"
seen 'x-age, x-color' '204 https://a.example' "$(./ask 'x-age, x-color')"
seen 'x-age,  x-color' '204 none' "$(./ask 'x-age,  x-color')"
seen 'x-color,x-age' '204 none' "$(./ask x-color,x-age)"
seen 'X-Age' '204 none' "$(./ask X-Age)"
