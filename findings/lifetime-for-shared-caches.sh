#!/usr/bin/env bash
# Cache-Control: max-age=0, s-maxage=60
#
# RFC 9111, section 5.2.2.10: for a shared cache, s-maxage takes the place of max-age.
# Guess: caches of servers keep this one for a minute.
# Seen: HAProxy 2.6.12 does not keep it, in either order, although it keeps s-maxage=60. nginx 1.22.1 and Varnish
# 7.1.1 keep it.
# It is the usual form for "browsers ask each time, caches in front do not": HAProxy passes all of that on.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

caches
for field in 'max-age=0, s-maxage=60' 's-maxage=60, max-age=0'; do
    for server in nginx varnish; do
        seen "$server: $field" kept "$(ask $server "Cache-Control: $field")"
    done
    seen "haproxy: $field" 'asked again' "$(ask haproxy "Cache-Control: $field")"
done
seen 'haproxy: s-maxage=60' kept "$(ask haproxy 'Cache-Control: s-maxage=60')"
