#!/usr/bin/env bash
# Vary: *
#
# RFC 9111, section 4.1: a stored answer with this field never matches a later request. RFC 9110, section 5.3: two lines
# of Cache-Control mean the same as one line with both values.
# Guess: a cache that compares the fields named in Vary knows the star, and a cache in a language with lists of field
# values reads all of them.
# Seen: github.com/gregjones/httpcache (Go) looks for a request field of the name `*`, finds none in either request, and
# gives the stored answer. It reads only the first line of Cache-Control. The cache of undici 7.30.2 (npm) does both.
# A server that says Vary: * to be left alone is not; no-store is the sure way. Directives on one line are safer than
# those that a proxy adds on a line of its own.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

cat >go.mod <<'GO'
module finding
go 1.26
require github.com/gregjones/httpcache v0.0.0-20190611155906-901d90724c79
GO
cat >main.go <<'GO'
package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"

	"github.com/gregjones/httpcache"
)

func main() {
	requests := 0
	server := httptest.NewServer(http.HandlerFunc(func(answer http.ResponseWriter, _ *http.Request) {
		requests++
		for field := 1; field < len(os.Args); field += 2 {
			answer.Header().Add(os.Args[field], os.Args[field+1])
		}
		io.WriteString(answer, "hello")
	}))
	client := http.Client{Transport: httpcache.NewMemoryCacheTransport()}
	for range 2 {
		answer, err := client.Get(server.URL)
		if err != nil {
			panic(err)
		}
		io.ReadAll(answer.Body)
		answer.Body.Close()
	}
	fmt.Println(requests)
}
GO
go mod tidy 2>/dev/null
go build -o ask .
minute=(Cache-Control max-age=60)
seen 'httpcache: requests sent, max-age=60' 1 "$(./ask "${minute[@]}")"
seen 'httpcache: requests sent, Vary: *' 1 "$(./ask "${minute[@]}" Vary '*')"
seen 'httpcache: requests sent, public, max-age=60' 1 "$(./ask Cache-Control 'public, max-age=60')"
seen 'httpcache: requests sent, in two lines' 2 "$(./ask Cache-Control public "${minute[@]}")"

npm_install undici@7.30.2
cat >ask.js <<'JS'
const http = require("http");
const { Agent, interceptors, request } = require("undici");
let requests = 0;
const server = http.createServer((_, response) => {
    requests += 1;
    for (const [name, value] of JSON.parse(process.argv[2])) response.setHeader(name, value);
    response.end("hello");
});
server.listen(0, "127.0.0.1", async () => {
    const dispatcher = new Agent().compose(interceptors.cache());
    for (let time = 0; time < 2; time += 1) {
        await (await request(`http://127.0.0.1:${server.address().port}/`, { dispatcher })).body.text();
    }
    console.log(requests);
    process.exit();
});
JS
seen 'undici: requests sent, Vary: *' 2 "$(node ask.js '[["cache-control", "max-age=60"], ["vary", "*"]]')"
seen 'undici: requests sent, in two lines' 1 "$(node ask.js '[["cache-control", ["public", "max-age=60"]]]')"
