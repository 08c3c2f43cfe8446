#!/usr/bin/env bash
# Cache-Control: max-age=60 and Age: 1000, to a cache of a server
#
# RFC 9111, sections 4.2.1 and 4.2.3: an answer is fresh as long as its age is below its lifetime, and Age says how old it was
# when it came.
# Guess: caches do not keep this one.
# Seen: nginx 1.22.1 keeps it, as if it were new. HAProxy 2.6.12 and Varnish 7.1.1 do not.
# Each such cache in a row adds the whole lifetime: behind a network of caches, a page of a minute is kept for several.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

caches
for server in nginx haproxy varnish; do
    seen "$server: max-age=60" kept "$(ask $server 'Cache-Control: max-age=60')"
done
for server in haproxy varnish; do
    seen "$server: and Age: 1000" 'asked again' "$(ask $server 'Cache-Control: max-age=60|Age: 1000')"
done
seen 'nginx: and Age: 1000' kept "$(ask nginx 'Cache-Control: max-age=60|Age: 1000')"
