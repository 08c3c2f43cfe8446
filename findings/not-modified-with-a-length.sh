#!/usr/bin/env bash
# :status 304, content-length: 5, and then an empty DATA frame with END_STREAM, over HTTP/2
#
# RFC 9113, section 8.1.1: answers that never have content, 304 among them, may have a content-length other than 0,
# although no content comes in DATA frames. Section 8.1: an empty DATA frame is one of the ways to end a stream.
# Guess: a client knows 304 as it knows HEAD, and whichever frame ends the stream.
# Seen: h2 4.4.1 (Python) raises InvalidBodyLengthError at the empty frame, for 304; httpx 0.28.1, which stands on it,
# gives LocalProtocolError instead of the answer. With END_STREAM at the header, or after HEAD, h2 takes the answer.
# A server that sends Content-Length with 304 had better end the stream with the header.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install h2==4.4.1 httpx==0.28.1
cat >ask.py <<'PY'
import sys
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import StreamEnded
from h2.exceptions import ProtocolError

method, end = sys.argv[1:]
client = H2Connection(H2Configuration(client_side=True))
server = H2Connection(H2Configuration(client_side=False))
client.initiate_connection()
server.initiate_connection()
client.send_headers(1, [(":method", method), (":path", "/"), (":scheme", "http"), (":authority", "a.example")], True)
server.receive_data(client.data_to_send())
server.send_headers(1, [(":status", "304"), ("content-length", "5")], end == "header")
if end == "data":
    server.send_data(1, b"", True)
try:
    events = client.receive_data(server.data_to_send())
    print("answer" if any(isinstance(event, StreamEnded) for event in events) else "none")
except ProtocolError as error:
    print(type(error).__name__)
PY
cat >serve.py <<'PY'
import httpx, socket, threading
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import RequestReceived

def serve(listener):
    connection = listener.accept()[0]
    server = H2Connection(H2Configuration(client_side=False))
    server.initiate_connection()
    while data := connection.recv(65536):
        for event in server.receive_data(data):
            if isinstance(event, RequestReceived):
                server.send_headers(event.stream_id, [(":status", "304"), ("content-length", "5")])
                server.send_data(event.stream_id, b"", True)
        connection.sendall(server.data_to_send())

listener = socket.create_server(("127.0.0.1", 0))
threading.Thread(target=serve, args=(listener,), daemon=True).start()
try:
    with httpx.Client(http1=False, http2=True) as client:
        print(client.get(f"http://127.0.0.1:{listener.getsockname()[1]}/").status_code)
except httpx.HTTPError as error:
    print(type(error).__name__)
PY
seen 'GET, END_STREAM with the header' answer "$(v/bin/python ask.py GET header)"
seen 'GET, END_STREAM with an empty frame' InvalidBodyLengthError "$(v/bin/python ask.py GET data)"
seen 'HEAD, END_STREAM with an empty frame' answer "$(v/bin/python ask.py HEAD data)"
seen 'httpx, with an empty frame' LocalProtocolError "$(v/bin/python serve.py)"
