#!/usr/bin/env bash
# :method HEAD, and then :status 200, content-length 5, without content, over HTTP/3
#
# RFC 9114, section 4.1.2: an answer that never has content, as to HEAD or with 304, may have a content-length other
# than 0, although no DATA frame comes. RFC 9110, section 8.6, lets such answers name the length that GET would have.
# Guess: libraries for HTTP/3 give the fields of such an answer.
# Seen: aioquic 1.7.2 (Python) gives nothing, and closes the whole connection with H3_MESSAGE_ERROR, to HEAD as with
# 304. qh3 2.1.0 (Python), whose interface is the same, gives the fields.
# A client on aioquic cannot ask a file server for a size, and its other requests end, too.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install aioquic==1.7.2 qh3==2.1.0
cat >ask.py <<'PY'
import sys
if sys.argv[1] == "aioquic":
    from aioquic.h3.connection import FrameType, H3Connection, encode_frame
    from aioquic.quic.configuration import QuicConfiguration
    from aioquic.quic.events import StreamDataReceived
    from pylsqpack import Encoder
else:
    from qh3.h3.connection import FrameType, H3Connection, encode_frame
    from qh3.quic.configuration import QuicConfiguration
    from qh3.quic.events import StreamDataReceived
    from qh3._hazmat import QpackEncoder as Encoder

class Connection:
    """what the library wants of QUIC below it"""
    configuration = QuicConfiguration(is_client=True)
    _quic_logger = _remote_max_datagram_frame_size = None
    _is_client = True
    next_stream = 2
    error = None

    def get_next_available_stream_id(self, is_unidirectional=False):
        self.next_stream += 4
        return self.next_stream - 4

    def send_stream_data(self, *_, **__):
        pass

    def close(self, error_code, reason_phrase):
        self.error = "closed with %x" % error_code

method, *fields = [word.encode() for word in sys.argv[2:]]
below = Connection()
client = H3Connection(below)
request = [(b":method", method), (b":scheme", b"https"), (b":authority", b"a.example"), (b":path", b"/")]
client.send_headers(0, request, end_stream=True)
answer = [tuple(field.split(b"=")) for field in fields]
frame = encode_frame(FrameType.HEADERS, Encoder().encode(0, answer)[1])
events = client.handle_event(StreamDataReceived(data=frame, end_stream=True, stream_id=0))
print(below.error or " ".join(value.decode() for event in events for _, value in event.headers))
PY
ask() {
    v/bin/python ask.py "$@"
}
seen 'aioquic: HEAD, content-length 0' '200 0' "$(ask aioquic HEAD :status=200 content-length=0)"
seen 'aioquic: HEAD, content-length 5' 'closed with 10e' "$(ask aioquic HEAD :status=200 content-length=5)"
seen 'aioquic: GET, 304, content-length 5' 'closed with 10e' "$(ask aioquic GET :status=304 content-length=5)"
seen 'qh3: HEAD, content-length 5' '200 5' "$(ask qh3 HEAD :status=200 content-length=5)"
seen 'qh3: GET, 304, content-length 5' '304 5' "$(ask qh3 GET :status=304 content-length=5)"
