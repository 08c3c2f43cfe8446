#!/usr/bin/env bash
# 5, hello, 0, X-T: v, through a proxy
#
# RFC 9110, section 6.5: fields behind the content stay apart from those before it, unless their definition allows to merge
# them; a proxy may leave them out. Trailer says which are to come.
# Guess: a proxy passes them on, or leaves them and Trailer out.
# Seen: lighttpd 1.4.69 puts X-T among the fields before the content. nginx 1.22.1 and h2o 2.2.5 leave it out, and pass Trailer
# on. HAProxy 2.6.12 passes both on.
# A client behind two of them waits for a check sum that is promised and never comes; behind one it finds it elsewhere.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

proxies <<'PY'
def answer(lines):
    fields = b"HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n"
    return fields + b"5\r\nhello\r\n0\r\nX-T: v\r\n\r\n"
PY
ask() {
    curl -s --unix-socket "$1" --raw -i -H 'TE: trailers' http://a.example/ | tr -d '\r' | tr '[:upper:]' '[:lower:]' |
        sed -n 's/^\(x-t\|trailer\): .*/\1/p; s/^hello$/content/p' | paste -sd ' '
}
seen 'lighttpd' 'x-t content' "$(ask lighttpd)"
seen 'nginx' 'trailer content' "$(ask nginx)"
seen 'h2o' 'trailer content' "$(ask h2o)"
seen 'HAProxy' 'trailer content x-t' "$(ask haproxy)"
