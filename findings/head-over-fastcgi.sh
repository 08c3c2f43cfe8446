#!/usr/bin/env bash
# HEAD, to a program behind FastCGI that gives content all the same
#
# RFC 3875, section 4.3.3: a program answers HEAD as GET, and may give the content; the server has to leave it out.
# Guess: every server for FastCGI leaves it out.
# Seen: HAProxy 2.6.12 answers HEAD with 502, if the program gives content, and with 200, if it does not.
# nginx 1.22.1 and lighttpd 1.4.69 answer 200 without content in all cases.
# net/http/fcgi of Go gives content with HEAD: its pages seem broken to a check by HEAD behind HAProxy.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

fastcgi_servers <<'PY'
def answer(parameters):
    length = b"Content-Length: 5\r\n" if b"/content-with-length" in parameters else b""
    content = b"hello" if b"/content" in parameters else b""
    return b"Content-Type: text/plain\r\n" + length + b"\r\n" + content
PY
status() {
    curl -s --unix-socket "$1" -I -o head -w '%{http_code}' "http://a.example/$2"
}
for server in nginx lighttpd; do
    for page in none content content-with-length; do
        seen "$server: HEAD /$page" 200 "$(status $server $page)"
    done
done
seen 'HAProxy: HEAD /none' 200 "$(status haproxy none)"
seen 'HAProxy: HEAD /content' 502 "$(status haproxy content)"
seen 'HAProxy: HEAD /content-with-length' 502 "$(status haproxy content-with-length)"
seen 'HAProxy: GET /content' hello "$(curl -s --unix-socket haproxy http://a.example/content)"
