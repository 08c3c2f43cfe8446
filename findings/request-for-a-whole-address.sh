#!/usr/bin/env bash
# "GET https://a.example/x HTTP/2.0", in a log of HAProxy
#
# HAProxy's configuration manual, section 8.2.3: the last field is the request line as it was received; for HTTP/2, its
# later versions write the whole address there. RFC 9112, section 3.2: OPTIONS has `*`, and CONNECT a host and a port. The
# manual, too: the address of the client is the word `unix` for a UNIX socket.
# Guess: a tool for these logs reads requests of HTTP/2.
# Seen: haproxy-log-analysis 6.0.0 (Python) calls method and path "invalid" wherever the target does not begin with a
# slash, and refuses the whole line of a UNIX socket.
# Statistics of paths hold HTTP/1 alone.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install haproxy-log-analysis==6.0.0
read_line() {
    v/bin/python -c '
import sys
from haproxy.line import Line
client, request = sys.argv[1:]
line = Line(
    "Feb  6 12:14:14 a.example haproxy[14389]: " + client + " [06/Feb/2009:12:14:14.655] in in/a"
    " 10/0/30/69/109 200 2750 - - ---- 1/1/1/1/0 0/0 \"" + request + "\""
)
print(f"{line.http_request_method} {line.http_request_path}" if line.is_valid else "refused")' "$@" | tail -n 1
}
CLIENT=192.0.2.1:33317
seen 'GET /x' 'GET /x' "$(read_line $CLIENT 'GET /x HTTP/1.1')"
seen 'GET https://a.example/x' 'invalid invalid' "$(read_line $CLIENT 'GET https://a.example/x HTTP/2.0')"
seen 'OPTIONS *' 'invalid invalid' "$(read_line $CLIENT 'OPTIONS * HTTP/1.1')"
seen 'CONNECT a.example:443' 'invalid invalid' "$(read_line $CLIENT 'CONNECT a.example:443 HTTP/1.1')"
seen 'GET /x, over a UNIX socket' refused "$(read_line unix:1 'GET /x HTTP/1.1')"
