#!/usr/bin/env bash
# GET /a?q=%7e%41%2f, in front of FastCGI
#
# RFC 3875, section 4.1.7: QUERY_STRING is the query in its encoded form, as it came. Programs check signatures of it.
# Guess: servers that pass requests on over FastCGI send it so.
# Seen: lighttpd 1.4.69 sends q=~A%2F, and REQUEST_URI with the query as it came. nginx 1.22.1, HAProxy 2.6.12 and h2o 2.2.5
# send it so in both. lighttpd does this by default, by url-normalize-unreserved in server.http-parseopts.
# A signature of a query is right by the one parameter, and wrong by the other.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

fastcgi_servers <<'PY'
def answer(parameters):
    return b"Content-Type: text/plain\r\n\r\n" + pairs(parameters)
PY
query() {
    curl -s --unix-socket "$1" 'http://a.example/a?q=%7e%41%2f' | sed -n "s/^$2=//p"
}
for server in nginx haproxy h2o; do
    seen "$server: QUERY_STRING" q=%7e%41%2f "$(query $server QUERY_STRING)"
done
seen 'lighttpd: QUERY_STRING' q=~A%2F "$(query lighttpd QUERY_STRING)"
seen 'lighttpd: REQUEST_URI' '/a?q=%7e%41%2f' "$(query lighttpd REQUEST_URI)"
