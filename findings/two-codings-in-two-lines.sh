#!/usr/bin/env bash
# content-encoding: gzip
# content-encoding: br
#
# RFC 9110, section 5.3: two lines of a field that is a list mean the same as one with a comma. Content-Encoding,
# Content-Language, If-Match and If-None-Match are lists.
# Guess: node:http2 joins them, as node:http does.
# Seen: Node 20 keeps the first line of each of these four over HTTP/2, without an error, as it does with fields that
# are no lists. It joins Vary, and over HTTP/1.1 it joins these, too.
# A program that decodes by the field gets bytes that it cannot read, and 200 where its client's second tag would do.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install h2==4.4.1
cat >ask.py <<'PY'
import socket, sys
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, StreamEnded

port, version, name, *values = sys.argv[1:]
connection = socket.create_connection(("127.0.0.1", int(port)))
if version == "1.1":
    lines = "".join(f"{name}: {value}\r\n" for value in values)
    connection.sendall(f"PUT / HTTP/1.1\r\nHost: a.example\r\n{lines}Connection: close\r\n\r\n".encode())
    print(connection.makefile().read().split("\n")[-1])
    sys.exit()
client = H2Connection(H2Configuration())
client.initiate_connection()
fields = [(":method", "PUT"), (":path", "/"), (":scheme", "http"), (":authority", "a.example")]
client.send_headers(1, fields + [(name, value) for value in values], end_stream=True)
content, ended = b"", False
while not ended:
    connection.sendall(client.data_to_send())
    for event in client.receive_data(connection.recv(65536)):
        content += event.data if isinstance(event, DataReceived) else b""
        ended |= isinstance(event, StreamEnded)
print(content.decode())
PY
cat >serve.js <<'JS'
const answer = (request, response) => {
    response.removeHeader("date");
    response.setHeader("content-length", Buffer.byteLength(request.headers[process.argv[3]]));
    response.end(request.headers[process.argv[3]]);
};
const server = require(`node:${process.argv[2]}`).createServer(answer);
server.listen(0, "127.0.0.1", () => {
    const version = process.argv[2] === "http" ? "1.1" : "2";
    const words = ["ask.py", server.address().port, version, ...process.argv.slice(3)];
    require("node:child_process").execFile("v/bin/python", words, (error, output) => {
        process.stdout.write(error?.message ?? output);
        process.exit();
    });
});
JS
node --version
seen 'HTTP/2: vary' 'a, b' "$(node serve.js http2 vary a b)"
seen 'HTTP/2: content-encoding' gzip "$(node serve.js http2 content-encoding gzip br)"
seen 'HTTP/2: content-language' de "$(node serve.js http2 content-language de en)"
seen 'HTTP/2: if-match' '"a"' "$(node serve.js http2 if-match '"a"' '"b"')"
seen 'HTTP/2: if-none-match' '"a"' "$(node serve.js http2 if-none-match '"a"' '"b"')"
seen 'HTTP/1.1: content-encoding' 'gzip, br' "$(node serve.js http content-encoding gzip br)"
seen 'HTTP/1.1: if-none-match' '"a", "b"' "$(node serve.js http if-none-match '"a"' '"b"')"
