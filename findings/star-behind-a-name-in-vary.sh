#!/usr/bin/env bash
# Vary: Accept-Language, *
#
# RFC 9110, section 12.5.5: Vary is a list of names and stars, and a list with a star in it says that other things than the
# request's fields decided. RFC 9111, section 4.1: such an answer never suits another request.
# Guess: a cache that knows "Vary: *" finds the star in a list, too.
# Seen: nginx 1.22.1 and Varnish 7.1.1 keep this answer and give it again, although neither keeps one with the star alone.
# nginx finds the star in a second line of Vary, and Varnish does not. HAProxy 2.6.12 keeps none of them.
# Two programs in a row, each of which adds its own word to Vary, make an answer for everybody of one for nobody.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

caches
lifetime='Cache-Control: max-age=60'
for server in nginx haproxy varnish; do
    seen "$server: *" 'asked again' "$(ask $server "$lifetime|Vary: *")"
done
for server in nginx varnish; do
    seen "$server: Accept-Language, *" kept "$(ask $server "$lifetime|Vary: Accept-Language, *")"
done
seen 'haproxy: Accept-Language, *' 'asked again' "$(ask haproxy "$lifetime|Vary: Accept-Language, *")"
seen 'nginx: two lines' 'asked again' "$(ask nginx "$lifetime|Vary: Accept-Language|Vary: *")"
seen 'varnish: two lines' kept "$(ask varnish "$lifetime|Vary: Accept-Language|Vary: *")"
