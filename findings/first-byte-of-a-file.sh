#!/usr/bin/env bash
# Range: bytes=0-0, and Range: bytes=-2, of a file of 5 bytes
#
# RFC 9110, section 14.1.2: 0-0 is the first byte, -2 the last two.
# Guess: a server of files that knows ranges gives 1 and 2 bytes, or ignores Range and answers 200.
# Seen: sirv 3.0.2 (npm; below Vite's preview and SvelteKit's Node server) takes the last place 0 for "none", and the
# empty first place for 0. So 0-0 is the whole file, and -2 its first three bytes, both with 206 and a Content-Range
# that says so.
# A cache, or a player, that asks for the first byte to learn a length gets everything. One that reads Content-Range is
# safe; one that trusts its own question puts wrong bytes in the wrong place.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install sirv@3.0.2
mkdir files
printf hello >files/five.txt
cat >ask.js <<'JS'
const http = require("http");
const server = http.createServer(require("sirv")("files"));
server.listen(0, "127.0.0.1", () => {
    const headers = { range: process.argv[2] };
    http.get({ host: "127.0.0.1", port: server.address().port, path: "/five.txt", headers, agent: false }, (answer) => {
        let text = "";
        answer.on("data", (data) => { text += data; });
        answer.on("end", () => {
            console.log(answer.statusCode, answer.headers["content-range"], text);
            server.close();
        });
    });
});
JS
seen 'sirv, 5 bytes: bytes=1-1' '206 bytes 1-1/5 e' "$(node ask.js 'bytes=1-1')"
seen 'sirv, 5 bytes: bytes=3-' '206 bytes 3-4/5 lo' "$(node ask.js 'bytes=3-')"
seen 'sirv, 5 bytes: bytes=0-0' '206 bytes 0-4/5 hello' "$(node ask.js 'bytes=0-0')"
seen 'sirv, 5 bytes: bytes=-2' '206 bytes 0-2/5 hel' "$(node ask.js 'bytes=-2')"
