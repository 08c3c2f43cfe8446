#!/usr/bin/env bash
# Host: A.example:8080, in front of FastCGI
#
# RFC 3875, section 4.1.14: SERVER_NAME is a name or an address; the port is SERVER_PORT. HTTP_HOST is the field as it came
# (section 4.1.18).
# Guess: servers that pass requests on over FastCGI send SERVER_NAME=a.example, and HTTP_HOST=A.example:8080.
# Seen: HAProxy 2.6.12 sends the port in SERVER_NAME, too. nginx 1.22.1, with fastcgi_params of its package in Debian 12, sends
# HTTP_HOST=a.example, without the port; h2o 2.2.5 has SERVER_NAME=default, a name in its configuration. lighttpd 1.4.69 sends
# a.example and a.example:8080.
# A program that writes links by SERVER_NAME has the port twice behind one server, and by HTTP_HOST none behind another.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

fastcgi_servers <<'PY'
def answer(parameters):
    return b"Content-Type: text/plain\r\n\r\n" + pairs(parameters)
PY
ask() {
    curl -s --unix-socket "$1" -H 'Host: A.example:8080' http://a.example/ |
        grep -E '^(SERVER_NAME|HTTP_HOST)=' | sort -u | cut -d = -f 2 | paste -sd ' '
}
seen 'HAProxy' 'A.example:8080 A.example:8080' "$(ask haproxy)"
seen 'nginx' 'a.example ' "$(ask nginx)"
seen 'h2o' 'A.example:8080 default' "$(ask h2o)"
seen 'lighttpd' 'a.example:8080 a.example' "$(ask lighttpd)"
