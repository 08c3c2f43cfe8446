#!/usr/bin/env bash
# GET /a%2Fb, through a proxy
#
# RFC 3986, section 2.2: a reserved character means something else when it is encoded: a%2Fb is one part of a path.
# Guess: a proxy passes the path on as it came.
# Seen: mod_proxy of lighttpd 1.4.69 asks for /a/b, and for /c/b in place of /c%2F%2Fb and of /c//b. nginx 1.22.1, HAProxy
# 2.6.12 and h2o 2.2.5 pass all on as they came. lighttpd does this by default (url-path-2f-decode in server.http-parseopts).
# A program behind it that has names with a slash in a part of its paths, as registries of packages have, answers 404.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

proxies <<'PY'
def answer(lines):
    content = b"\n".join(lines) + b"\n"
    return b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%b" % (len(content), content)
PY
ask() {
    curl -s --path-as-is --unix-socket "$1" "http://a.example$2" | cut -d ' ' -f 2 | head -1
}
for server in nginx haproxy h2o; do
    for path in /a%2Fb /c%2F%2Fb /c//b; do
        seen "$server: $path" $path "$(ask $server $path)"
    done
done
seen 'lighttpd: /a%2Fb' /a/b "$(ask lighttpd /a%2Fb)"
seen 'lighttpd: /c%2F%2Fb' /c/b "$(ask lighttpd /c%2F%2Fb)"
seen 'lighttpd: /c//b' /c/b "$(ask lighttpd /c//b)"
