#!/usr/bin/env bash
# Range: bytes=3-, and If-Range: "the entity tag of an older file"
#
# RFC 9110, section 13.1.5: if the validator does not match, the recipient has to ignore Range, so that a client that
# goes on with a download gets the new file whole, and not its end behind the beginning of the old one.
# Guess: a server that knows Range and sends entity tags answers 200.
# Seen: aiohttp 3.14.5 (Python) reads If-Range only if it is a date, and answers 206 here. http.FileServer of Go 1.26
# answers 200.
# The users of such a server glue two files together. A cache in front that keeps the whole file mends that.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install aiohttp==3.14.5
mkdir files
printf hello >files/a.txt
cat >ask.py <<'PY'
import asyncio, sys
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

async def ask():
    app = web.Application()
    app.router.add_static("/", "files")
    async with TestClient(TestServer(app)) as client:
        found = await client.get("/a.txt", headers={"Range": "bytes=3-", "If-Range": sys.argv[1]})
        print(found.status, found.headers["etag"] != sys.argv[1], await found.text())

asyncio.run(ask())
PY
seen 'aiohttp: a date before the file' '200 True hello' "$(v/bin/python ask.py 'Sun, 06 Nov 1994 08:49:37 GMT')"
seen 'aiohttp: another tag' '206 True lo' "$(v/bin/python ask.py '"other"')"

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
	request.Header.Set("Range", "bytes=3-")
	request.Header.Set("If-Range", os.Args[1])
	answer := httptest.NewRecorder()
	answer.Header().Set("ETag", `"new"`)
	http.ServeContent(answer, request, "a.txt", time.Unix(1e9, 0), strings.NewReader("hello"))
	fmt.Println(answer.Code, answer.Body)
}
GO
go build -o ask .
seen 'Go: the same tag' '206 lo' "$(./ask '"new"')"
seen 'Go: another tag' '200 hello' "$(./ask '"other"')"
