#!/usr/bin/env bash
# Connection: X-A and X-A: 1, through a proxy
#
# RFC 9110, section 7.6.1: a proxy removes each field that Connection names, in requests and answers, and then Connection
# itself or puts its own in its place.
# Guess: proxies do so.
# Seen: nginx 1.22.1, lighttpd 1.4.69 and h2o 2.2.5 remove Connection alone, and pass X-A on, as a field for everyone. HAProxy
# 2.6.12 passes a request's both on, and both of an answer. None removes X-A.
# A field that was meant for the next program alone goes on to the last one.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

proxies <<'PY'
def answer(lines):
    content = b"\n".join(lines) + b"\n"
    return b"HTTP/1.1 200 OK\r\nConnection: close, X-A\r\nX-A: 1\r\nContent-Length: %d\r\n\r\n%b" % (len(content), content)
PY
asked() {
    curl -s --unix-socket "$1" -H 'Connection: X-A' -H 'X-A: 1' http://a.example/ | tr '[:upper:]' '[:lower:]' |
        sed -n '/^x-a: \|^connection: x-a/p' | sort | paste -sd '|'
}
answered() {
    curl -s --unix-socket "$1" -o content -D - http://a.example/ | tr -d '\r' | tr '[:upper:]' '[:lower:]' |
        sed -n '/^x-a: \|^connection: .*x-a/p' | sort | paste -sd '|'
}
for server in nginx lighttpd h2o; do
    seen "$server: asked" 'x-a: 1' "$(asked $server)"
    seen "$server: answered" 'x-a: 1' "$(answered $server)"
done
seen 'HAProxy: asked' 'connection: x-a|x-a: 1' "$(asked haproxy)"
seen 'HAProxy: answered' 'connection: x-a|x-a: 1' "$(answered haproxy)"
