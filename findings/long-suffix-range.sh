#!/usr/bin/env bash
# Range: bytes=-9, of a file of 5 bytes
#
# RFC 9110, section 14.1.2: if a representation is shorter than a suffix range asks for, the whole of it is meant.
# Guess: 206 with all five bytes, as Go 1.26 answers.
# Seen: range-parser 1.2.1, by which send 1.2.0 and so Express 5 decide, calls the range unsatisfiable: 416.
# A file that such a server answers with 416, and that is kept in front of it, is answered with 206 there. That is right by
# the RFC, and a difference all the same.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install range-parser@1.2.1 send@1.2.0
printf hello >five.txt
cat >ask.js <<'JS'
const http = require("http");
const send = require("send");
const server = http.createServer((request, response) => send(request, "five.txt", { root: "." }).pipe(response));
server.listen(0, "127.0.0.1", () => {
    const headers = { range: process.argv[2] };
    http.get({ host: "127.0.0.1", port: server.address().port, headers }, (answer) => {
        console.log(answer.statusCode, answer.headers["content-range"]);
        answer.resume().on("end", () => { server.close(); server.closeAllConnections(); });
    });
});
JS
seen 'send, 5 bytes: bytes=-5' '206 bytes 0-4/5' "$(node ask.js 'bytes=-5')"
seen 'send, 5 bytes: bytes=0-8' '206 bytes 0-4/5' "$(node ask.js 'bytes=0-8')"
seen 'send, 5 bytes: bytes=-9' '416 bytes */5' "$(node ask.js 'bytes=-9')"
