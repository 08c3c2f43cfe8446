#!/usr/bin/env bash
# Accept-Encoding: (with no value), in front of FastCGI
#
# RFC 9110, section 5.5: a value may be empty; section 12.5.3: this field without a value asks for no coding, and a request
# without the field takes any.
# Guess: servers that pass requests on over FastCGI send a parameter with an empty value.
# Seen: lighttpd 1.4.69 sends none, and leaves fields without a value out of answers, too. nginx 1.22.1, HAProxy 2.6.12 and h2o
# 2.2.5 pass both on.
# A program that compresses unless the client forbids it sends such a client what it cannot read.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

fastcgi_servers <<'PY'
def answer(parameters):
    return b"Content-Type: text/plain\r\nX-A:\r\n\r\n" + pairs(parameters)
PY
asked() {
    curl -s --unix-socket "$1" -H 'Accept-Encoding;' http://a.example/ | grep '^HTTP_ACCEPT_ENCODING=' || true
}
answered() {
    curl -s --unix-socket "$1" -o content -D - http://a.example/ | tr -d '\r' | grep -io '^x-a:' | tr X-Z x-z | tr A a || true
}
for server in nginx haproxy h2o; do
    seen "$server: asked" HTTP_ACCEPT_ENCODING= "$(asked $server)"
    seen "$server: answered" x-a: "$(answered $server)"
done
seen 'lighttpd: asked' '' "$(asked lighttpd)"
seen 'lighttpd: answered' '' "$(answered lighttpd)"
