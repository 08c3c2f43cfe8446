#!/usr/bin/env bash
# Cache-Control: x-max-age=60
#
# RFC 9111, section 5.2.3: a cache ignores directives that it does not know; section 5.2: a value may stand in quotes, and
# recipients ought to take both forms.
# Guess: for a cache, an unknown directive is none.
# Seen: nginx 1.22.1 looks for its names anywhere in the field: it keeps an answer for x-max-age=60, and does not keep one with
# max-age=60 for x-no-store, or for a="no-store". It takes no lifetime from max-age="60". HAProxy 2.6.12 takes each as meant.
# Extensions have to have names that no name of HTTP ends.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

caches
seen 'nginx: a=60' 'asked again' "$(ask nginx 'Cache-Control: a=60')"
seen 'nginx: x-max-age=60' kept "$(ask nginx 'Cache-Control: x-max-age=60')"
seen 'haproxy: x-max-age=60' 'asked again' "$(ask haproxy 'Cache-Control: x-max-age=60')"
for field in 'max-age=60, x-no-store' 'max-age=60, a="no-store"' 'max-age="60"'; do
    seen "nginx: $field" 'asked again' "$(ask nginx "Cache-Control: $field")"
    seen "haproxy: $field" kept "$(ask haproxy "Cache-Control: $field")"
done
