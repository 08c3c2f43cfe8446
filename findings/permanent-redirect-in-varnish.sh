#!/usr/bin/env bash
# 308 with Cache-Control: max-age=60
#
# RFC 9111, section 3: an answer with a lifetime may be kept whatever its status, if the status is final. RFC 9110, section 15.1:
# 308 may even be kept without a lifetime, as 301 may.
# Guess: caches of servers that keep 301 keep 308.
# Seen: Varnish 7.1.1 asks for 308, 405 and 501 again each time, and keeps 301, 302, 307, 404, 410 and 414. nginx 1.22.1 keeps all of
# them.
# A site that moves from 301 to 308 gives up its cache for redirects.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

caches
sed -i 's|"HTTP/1.1 200 OK"|"HTTP/1.1 " + fields[0][-3:] + " Own"|' serve.py
kill "${servers[0]}"
rm origin
python3 serve.py &
servers[0]=$!
until [[ -S origin ]]; do sleep 0.05; done
# keeps SERVER STATUS
keeps() {
    local address=http://a.example/$1-$2%7CCache-Control:max-age=60
    curl -s --unix-socket "$1" "$address" >first
    sleep 1
    curl -s --unix-socket "$1" -w ' %{http_code}' "$address" | sed 's/^1 /kept /; s/^2 /asked again /'
}
for status in 301 302 307 404 410 414; do
    seen "nginx: $status" "kept $status" "$(keeps nginx $status)"
    seen "varnish: $status" "kept $status" "$(keeps varnish $status)"
done
for status in 308 405 501; do
    seen "nginx: $status" "kept $status" "$(keeps nginx $status)"
    seen "varnish: $status" "asked again $status" "$(keeps varnish $status)"
done
