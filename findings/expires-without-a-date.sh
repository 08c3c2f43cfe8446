#!/usr/bin/env bash
# Expires: 0
#
# RFC 9111, section 5.3: a value that is no date, 0 above all, means a time that is past.
# Guess: caches do not keep such an answer.
# Seen: Varnish 7.1.1 keeps it for two minutes, its time for answers without a lifetime, and so with -1. nginx 1.22.1 and
# HAProxy 2.6.12 keep neither. All three know a date that is past.
# Programs write both for "do not keep this": they ought to write Cache-Control: no-store.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

caches
for server in nginx haproxy varnish; do
    seen "$server: a date that is past" 'asked again' "$(ask $server 'Expires: Sun, 06 Nov 1994 08:49:37 GMT')"
done
for value in 0 -1; do
    for server in nginx haproxy; do
        seen "$server: $value" 'asked again' "$(ask $server "Expires: $value")"
    done
    seen "varnish: $value" kept "$(ask varnish "Expires: $value")"
done
