#!/usr/bin/env bash
# 00 00: a list of no fields in QPACK, as that of a trailer section without any
#
# RFC 9204, section 4.5: two numbers stand before the lines of a list, and a list has as many lines as it likes. RFC 9114,
# section 4.1: a message may end with a HEADERS frame for trailers; no rule asks for a field in it.
# Guess: a decoder gives a list without fields.
# Seen: pylsqpack 1.0.0 (Python) writes 00 00 for no fields, and refuses to read it, so that aioquic 1.7.2 (Python) closes the
# connection. qh3 2.1.0 (Python) refuses it, too. github.com/quic-go/qpack 0.6.0 (Go) reads it.
# A server that has announced trailers, and then has none, may not send an empty list.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install pylsqpack==1.0.0 qh3==2.1.0 aioquic==1.7.2
cat >read.py <<'PY'
import sys
if sys.argv[1] == "qh3":
    from qh3._hazmat import QpackDecoder as Decoder, QpackEncoder as Encoder
else:
    from pylsqpack import Decoder, Encoder
if sys.argv[2] == "write":
    print(Encoder().encode(0, [])[1].hex())
else:
    try:
        print(Decoder(4096, 16).feed_header(0, bytes.fromhex(sys.argv[2]))[1])
    except Exception as error:
        print(type(error).__name__)
PY
python() {
    v/bin/python read.py "$@"
}
seen 'pylsqpack writes' 0000 "$(python pylsqpack write)"
seen 'pylsqpack: that' DecompressionFailed "$(python pylsqpack 0000)"
seen 'pylsqpack: one field' "[(b':method', b'GET')]" "$(python pylsqpack 0000d1)"
seen 'qh3 writes' 0000 "$(python qh3 write)"
seen 'qh3: that' DecoderStreamError "$(python qh3 0000)"
seen 'qh3: one field' "[(b':method', b'GET')]" "$(python qh3 0000d1)"

cat >close.py <<'PY'
from aioquic.h3.connection import FrameType, H3Connection, encode_frame
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import StreamDataReceived

class Connection:
    """what the library wants of QUIC below it"""
    configuration = QuicConfiguration(is_client=True)
    _quic_logger = _remote_max_datagram_frame_size = None
    _is_client = True
    next_stream = 2
    error = "open"

    def get_next_available_stream_id(self, is_unidirectional=False):
        self.next_stream += 4
        return self.next_stream - 4

    def send_stream_data(self, *_, **__):
        pass

    def close(self, error_code, reason_phrase):
        self.error = "closed with %x" % error_code

below = Connection()
client = H3Connection(below)
client.send_headers(0, [(b":method", b"GET"), (b":scheme", b"https"), (b":authority", b"a"), (b":path", b"/")], True)
answer = encode_frame(FrameType.HEADERS, bytes.fromhex("0000d9"))  # :status 200
trailers = encode_frame(FrameType.HEADERS, bytes.fromhex("0000"))
client.handle_event(StreamDataReceived(data=answer, end_stream=False, stream_id=0))
print(below.error)
client.handle_event(StreamDataReceived(data=trailers, end_stream=True, stream_id=0))
print(below.error)
PY
seen 'aioquic: the answer, and empty trailers' 'open, closed with 200' "$(v/bin/python close.py | paste -sd , | sed 's/,/, /')"

cat >go.mod <<'GO'
module finding
go 1.26
require github.com/quic-go/qpack v0.6.0
GO
cat >main.go <<'GO'
package main

import (
	"fmt"

	"github.com/quic-go/qpack"
)

func main() {
	_, err := qpack.NewDecoder().Decode([]byte{0, 0})()
	fmt.Println(err)
}
GO
go mod tidy 2>/dev/null
seen 'qpack (Go): the end of the list' EOF "$(go run .)"
