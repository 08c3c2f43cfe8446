#!/usr/bin/env bash
# Expires: (a date that is past), and below it Cache-Control: max-age=60
#
# RFC 9111, section 5.3: a recipient ignores Expires, if Cache-Control has max-age. RFC 9110, section 5.3: the order of fields of
# different names means nothing.
# Guess: caches keep this answer for a minute, and those that do not leave it in either order.
# Seen: nginx 1.22.1 does not keep it, and keeps the same answer with the two fields in the opposite order. HAProxy 2.6.12 and
# Varnish 7.1.1 keep both.
# Sessions of PHP write such an Expires, and a program's own Cache-Control comes behind it: the page is never kept, and no line of
# it is wrong.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

caches
past='Expires: Sun, 06 Nov 1994 08:49:37 GMT' lifetime='Cache-Control: max-age=60'
for server in haproxy varnish; do
    seen "$server: Expires first" kept "$(ask $server "$past|$lifetime")"
    seen "$server: Cache-Control first" kept "$(ask $server "$lifetime|$past")"
done
seen 'nginx: Expires first' 'asked again' "$(ask nginx "$past|$lifetime")"
seen 'nginx: Cache-Control first' kept "$(ask nginx "$lifetime|$past")"
