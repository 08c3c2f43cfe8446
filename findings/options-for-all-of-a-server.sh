#!/usr/bin/env bash
# OPTIONS *, and GET http://a.example/a, in front of FastCGI
#
# RFC 9112, section 3.2.4: OPTIONS with * asks about the server as a whole. Section 3.2.2: a server accepts a whole address
# from everyone, not from proxies alone.
# Guess: a server answers the first by itself, or passes it on with REQUEST_URI=*; and takes the second for GET /a.
# Seen: nginx 1.22.1 answers the first with 400, HAProxy 2.6.12 (fcgi-app) with 500. h2o 2.2.5 passes it on as the path /*, and
# the second as the path /http://a.example/a. lighttpd 1.4.69 answers the first by itself; it, nginx and HAProxy find the
# path /a in the second.
# A check by OPTIONS * takes two of these servers for broken.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

fastcgi_servers <<'PY'
def answer(parameters):
    return b"Content-Type: text/plain\r\n\r\n" + pairs(parameters)
PY
status() {
    curl -s --unix-socket "$1" -X OPTIONS --request-target '*' -o content -w '%{http_code}' http://a.example/
}
path() {
    curl -s --unix-socket "$1" --request-target http://a.example/a http://a.example/ | sed -n "s/^$2=//p"
}
seen 'nginx: OPTIONS *' 400 "$(status nginx)"
seen 'HAProxy: OPTIONS *' 500 "$(status haproxy)"
seen 'lighttpd: OPTIONS *' 200 "$(status lighttpd)"
seen 'h2o: OPTIONS *' 200 "$(status h2o)"
seen 'h2o: path of that' '/*' "$(sed -n 's/^PATH_INFO=//p' content)"
seen 'h2o: whole address' /http://a.example/a "$(path h2o PATH_INFO)"
for server in nginx haproxy lighttpd; do
    seen "$server: whole address" /a "$(path $server SCRIPT_NAME)"
done
