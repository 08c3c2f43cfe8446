#!/usr/bin/env bash
# Date: Sun, 06 Nov 1994 08:49:37 GMT, through a proxy
#
# RFC 9110, section 6.6.1: Date is when the answer was made; a recipient with a clock adds one where there is none. RFC 9111,
# section 4.2.3, takes the age of an answer from it.
# Guess: a proxy keeps Date.
# Seen: nginx 1.22.1 and h2o 2.2.5 write the time of now. HAProxy 2.6.12 and lighttpd 1.4.69 keep it.
# Behind the first two, an answer that is old seems new to a cache, which keeps it too long.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

proxies <<'PY'
def answer(lines):
    date = b"Date: Sun, 06 Nov 1994 08:49:37 GMT\r\nCache-Control: max-age=3600\r\n"
    return b"HTTP/1.1 200 OK\r\nConnection: close\r\n" + date + b"Content-Length: 5\r\n\r\nhello"
PY
ask() {
    curl -s --unix-socket "$1" -o content -D - http://a.example/ | tr -d '\r' | sed -n 's/^[Dd]ate: //p' |
        sed 's/^Sun, 06 Nov 1994.*/kept/; t; s/.*/written anew/'
}
seen 'nginx' 'written anew' "$(ask nginx)"
seen 'h2o' 'written anew' "$(ask h2o)"
seen 'HAProxy' kept "$(ask haproxy)"
seen 'lighttpd' kept "$(ask lighttpd)"
