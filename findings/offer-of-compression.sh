#!/usr/bin/env bash
# Sec-WebSocket-Extensions: permessage-deflate; later=1, permessage-deflate
#
# RFC 7692, section 5.1: a client may make several offers, in the order of its preference, and section 7: a server
# declines an offer with a parameter that is not defined. RFC 6455, section 9.1: a value may be quoted.
# Guess: servers decline the first offer and accept the second; where there is only the first, they go on without the
# extension. client_max_window_bits="10" means the same as without quotes.
# Seen: ws 8.23.0 (npm) answers 400 to both offers and to the first alone. wsproto 1.3.2 (Python) accepts the first, as
# if the parameter were not there, and fails at the quotes. permessage-deflate 0.1.7 with websocket-extensions 0.2.0
# (npm) does all as the RFCs say.
# A client that offers a parameter of a later RFC ahead of what everybody knows cannot connect to servers with ws.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
FIRST='permessage-deflate; later=1'
QUOTED='permessage-deflate; client_max_window_bits="10"'

npm_install ws@8.23.0 permessage-deflate@0.1.7 websocket-extensions@0.2.0
cat >ask.mjs <<'JS'
import http from "node:http";
import { WebSocketServer } from "ws";
const server = new WebSocketServer({ port: 0, host: "127.0.0.1", perMessageDeflate: true }, () => {
    const headers = {
        Connection: "Upgrade",
        Upgrade: "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
        "Sec-WebSocket-Extensions": process.argv[2],
    };
    const report = (answer) => {
        console.log(answer.statusCode, answer.headers["sec-websocket-extensions"] ?? "none");
        process.exit();
    };
    const request = http.get({ host: "127.0.0.1", port: server.address().port, headers });
    request.on("response", report).on("upgrade", report);
});
JS
extensions() {
    node -p '
        const extensions = new (require("websocket-extensions"))();
        extensions.add(require("permessage-deflate"));
        extensions.generateResponse(process.argv[1]) ?? "none"' "$1"
}
seen 'ws: permessage-deflate' '101 permessage-deflate' "$(node ask.mjs permessage-deflate)"
seen 'ws: later=1' '400 none' "$(node ask.mjs "$FIRST")"
seen 'ws: later=1, permessage-deflate' '400 none' "$(node ask.mjs "$FIRST, permessage-deflate")"
seen 'ws: client_max_window_bits="10"' '101 permessage-deflate; client_max_window_bits=10' "$(node ask.mjs "$QUOTED")"
seen 'permessage-deflate: later=1' none "$(extensions "$FIRST")"
seen 'permessage-deflate: both' permessage-deflate "$(extensions "$FIRST, permessage-deflate")"

pip_install wsproto==1.3.2
cat >ask.py <<'PY'
import sys
from wsproto import ConnectionType, WSConnection
from wsproto.events import AcceptConnection
from wsproto.extensions import PerMessageDeflate
connection = WSConnection(ConnectionType.SERVER)
connection.receive_data((
    "GET / HTTP/1.1\r\nHost: a.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    f"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Extensions: {sys.argv[1]}\r\n\r\n").encode())
try:
    answer = connection.send(AcceptConnection(extensions=[PerMessageDeflate()])).decode().lower().split("\r\n")
    print(*([line.split(": ")[1] for line in answer if line.startswith("sec-websocket-extensions")] or ["none"]))
except Exception as error:
    print(type(error).__name__)
PY
seen 'wsproto: permessage-deflate' permessage-deflate "$(v/bin/python ask.py permessage-deflate)"
seen 'wsproto: later=1' permessage-deflate "$(v/bin/python ask.py "$FIRST")"
seen 'wsproto: client_max_window_bits="10"' ValueError "$(v/bin/python ask.py "$QUOTED")"
