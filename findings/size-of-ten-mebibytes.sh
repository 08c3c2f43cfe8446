#!/usr/bin/env bash
# limit: "10M"
#
# IEC 80000-13 has MiB for 2^20 bytes. The tools of GNU, and the settings of nginx, Apache and PHP, write 10M for that size.
# Guess: a parser of sizes reads 10M and 10MiB, or gives no number for units that it does not know.
# Seen: bytes 3.1.2 (npm), by which Express reads the limit of a request's content, gives 10 for both, and for 10G and 10GiB:
# it drops what it does not know, without an error. It knows 10MB, and 10mb. filesize-parser 1.5.2 (npm) reads all of them.
# A server with this limit refuses every content of 11 bytes with 413.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install bytes@3.1.2 filesize-parser@1.5.2 express@5.2.1
cat >ask.js <<'JS'
const express = require("express");
const application = express();
application.use(express.text({ limit: process.argv[2] }));
application.use((error, request, response, next) => response.sendStatus(error.status));
application.post("/", (request, response) => response.sendStatus(200));
const server = application.listen(0, "127.0.0.1", async () => {
    const address = `http://127.0.0.1:${server.address().port}/`;
    const answer = await fetch(address, { method: "POST", body: "hello world" });
    console.log(answer.status);
    process.exit();
});
JS
for size in 10MB 10mb; do
    seen "bytes: $size" 10485760 "$(node -p "require('bytes').parse('$size')")"
done
for size in 10M 10MiB 10G 10GiB; do
    seen "bytes: $size" 10 "$(node -p "require('bytes').parse('$size')")"
done
for size in 10MB 10M 10MiB; do
    seen "filesize-parser: $size" 10485760 "$(node -p "require('filesize-parser')('$size')")"
done
seen 'Express: 11 bytes, limit 10MB' 200 "$(node ask.js 10MB)"
seen 'Express: 11 bytes, limit 10M' 413 "$(node ask.js 10M)"
