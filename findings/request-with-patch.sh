#!/usr/bin/env bash
# PATCH / HTTP/1.1, in a capture
#
# RFC 9110, section 16.1: the methods are those of a registry, where PATCH stands since RFC 5789. RFC 9112, section
# 7.1.1: a recipient ignores extensions of chunks that it does not know, and section 6.1: chunked is the last coding.
# Guess: a library for captures gives method, fields and content of each valid message.
# Seen: dpkt 1.9.8 (Python) refuses PATCH, although it knows BASELINE-CONTROL, and refuses a chunk with an
# extension. The content of an answer in `gzip, chunked` is empty to it, and the chunks become the next message. Scapy
# 2.8.0 (Python) finds no request in one with PATCH.
# The requests of many interfaces of today are missing in what is counted by either.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install dpkt==1.9.8 scapy==2.8.0
cat >read.py <<'PY'
import sys
message = sys.argv[2].encode().decode("unicode_escape").encode()
if sys.argv[1] == "scapy":
    from scapy.layers.http import HTTP, HTTPRequest
    found = HTTP(message)
    print(found[HTTPRequest].Method.decode() if HTTPRequest in found else "no request")
else:
    import dpkt
    kind = dpkt.http.Response if message.startswith(b"HTTP/") else dpkt.http.Request
    try:
        found = kind(message)
        print(getattr(found, "method", found.version), found.body.decode(), len(found.data))
    except dpkt.UnpackError as error:
        print(error)
PY
request() {
    printf '%s' "$1"' / HTTP/1.1\r\nHost: a.example\r\nContent-Length: 5\r\n\r\nhello'
}
answer() {
    printf '%s' 'HTTP/1.1 200 OK\r\nTransfer-Encoding: '"$1"'\r\n\r\n5'"$2"'\r\nhello\r\n0\r\n\r\n'
}
dpkt() {
    v/bin/python read.py dpkt "$1"
}
for method in POST BASELINE-CONTROL; do
    seen "dpkt: $method" "$method hello 0" "$(dpkt "$(request $method)")"
done
seen 'dpkt: PATCH' "invalid http method: 'PATCH'" "$(dpkt "$(request PATCH)")"
seen 'scapy: POST' POST "$(v/bin/python read.py scapy "$(request POST)" 2>/dev/null)"
seen 'scapy: PATCH' 'no request' "$(v/bin/python read.py scapy "$(request PATCH)" 2>/dev/null)"
seen 'dpkt: a chunk' '1.1 hello 0' "$(dpkt "$(answer chunked '')")"
seen 'dpkt: an extension' 'invalid chunk size' "$(dpkt "$(answer chunked ';a=b')")"
seen 'dpkt: gzip, chunked' '1.1  15' "$(dpkt "$(answer 'gzip, chunked' '')")"
