#!/usr/bin/env bash
# Status: 301 Moved Permanently, then Location: http://a.example/b, from FastCGI
#
# RFC 3875, section 6.2.4: a program that sends its client elsewhere may state the status. The order of fields has no meaning.
# Section 6.2.3: Location with an address alone, without Status, is 302.
# Guess: a server gives the status that the program states, and 302 where it states none.
# Seen: HAProxy 2.6.12 gives 302 for each status that stands before Location, even for 201; behind it, it gives the one stated.
# h2o 2.2.5 gives 200 for Location without Status. nginx 1.22.1 and lighttpd 1.4.69 do as the RFC says.
# PHP writes Status first: its lasting redirects are temporary behind HAProxy, and a 303 or 308 is lost.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

fastcgi_servers <<'PY'
import re

def answer(parameters):
    fields = [b"Location: http://a.example/b\r\n"]
    if found := re.search(rb"/(\d+)-(first|behind)", parameters):
        fields.insert(0 if found[2] == b"first" else 1, b"Status: " + found[1] + b" As Stated\r\n")
    return b"".join(fields) + b"Content-Type: text/plain\r\n\r\nhello"
PY
status() {
    curl -s --unix-socket "$1" -o content -w '%{http_code}' "http://a.example/$2"
}
for server in nginx lighttpd; do
    seen "$server: Location" 302 "$(status $server alone)"
    seen "$server: Status, Location" 301 "$(status $server 301-first)"
    seen "$server: Location, Status" 301 "$(status $server 301-behind)"
done
seen 'HAProxy: Location' 302 "$(status haproxy alone)"
for status in 201 301 303 308; do
    seen "HAProxy: Status: $status, Location" 302 "$(status haproxy $status-first)"
    seen "HAProxy: Location, Status: $status" $status "$(status haproxy $status-behind)"
done
seen 'h2o: Location' 200 "$(status h2o alone)"
seen 'h2o: Status, Location' 301 "$(status h2o 301-first)"
