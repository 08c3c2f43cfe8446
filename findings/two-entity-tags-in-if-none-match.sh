#!/usr/bin/env bash
# If-None-Match: "x", "a"
#
# RFC 9110, section 13.1.2: the field lists the tags of all copies that a client has, and a server that has one of them answers 304;
# section 5.3: lines of a list may be joined, and so divided.
# Guess: caches of servers answer 304 to both forms, as their kept answer has the tag "a".
# Seen: Varnish 7.1.1 sends the whole content for a list, in any order, and for a star, and knows a single tag alone. nginx 1.22.1
# answers 400 to two lines, where it answers 304 to one of two tags. HAProxy 2.6.12 answers 304 to all.
# A cache behind another has several copies of a page with Vary, and asks with a list.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

caches
# status SERVER TAGS...: of its answer for a client with these tags, each argument a line
status() {
    local server=$1 address=http://a.example/$1$#${2//[^a-z]/}%7CCache-Control:max-age=60%7CETag:%22a%22 tags lines=()
    for tags in "${@:2}"; do
        lines+=(-H "If-None-Match: $tags")
    done
    curl -s --unix-socket "$server" "$address" >first
    sleep 1
    curl -s --unix-socket "$server" -o second -w '%{http_code}' "${lines[@]}" "$address"
}
for server in nginx haproxy varnish; do
    seen "$server: one tag" 304 "$(status $server '"a"')"
done
for server in nginx haproxy; do
    seen "$server: two tags" 304 "$(status $server '"x", "a"')"
    seen "$server: the same, in another order" 304 "$(status $server '"a", "x"')"
    seen "$server: a star" 304 "$(status $server '*')"
done
seen 'varnish: two tags' 200 "$(status varnish '"x", "a"')"
seen 'varnish: the same, in another order' 200 "$(status varnish '"a", "x"')"
seen 'varnish: a star' 200 "$(status varnish '*')"
seen 'haproxy: two lines' 304 "$(status haproxy '"x"' '"a"')"
seen 'varnish: two lines' 200 "$(status varnish '"x"' '"a"')"
seen 'nginx: two lines' 400 "$(status nginx '"x"' '"a"')"
