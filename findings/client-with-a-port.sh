#!/usr/bin/env bash
# X-Forwarded-For: [2001:db8::1]:51000
#
# Microsoft, "How an application gateway works": it adds the client with its port to X-Forwarded-For. RFC 7239, section 6: an address of
# IPv6 before a port stands in brackets, and "unknown" may stand for a client. Section 5.2: the first of a list is the client.
# Guess: libraries that look for the client's address find 2001:db8::1, and 192.0.2.1 in 192.0.2.1:51000.
# Seen: request-ip 3.3.0, @supercharge/request-ip 1.2.0, ipware 2.0.0, forwarded-for 1.1.0 and get-client-ip 3.0.4 (npm) give the proxy's
# address, and client-ip 1.0.0 (npm) the text with its port. ipware and get-client-ip give the proxy's for 192.0.2.1:51000, too.
# forwarded-for gives it for "unknown, 192.0.2.1". python-ipware 4.1.1 (Python) finds the address, if it is a public one.
# All the clients behind such a gateway share one limit.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

NODE=(request-ip@3.3.0 @supercharge/request-ip@1.2.0 ipware@2.0.0 forwarded-for@1.1.0 get-client-ip@3.0.4 client-ip@1.0.0)
npm_install "${NODE[@]}"
pip_install python-ipware==4.1.1
cat >client.js <<'JS'
const [name, value] = process.argv.slice(2), library = require(name);
const request = { headers: { "x-forwarded-for": value }, socket: { remoteAddress: "203.0.113.9" },
    connection: { remoteAddress: "203.0.113.9" }, info: {} };
const found = {
    ipware: () => library().get_ip(request).clientIp,
    "forwarded-for": () => library(request, request.headers).ip,
    "client-ip": () => library(request),
}[name];
console.log(found ? found() : library.getClientIp(request));
JS
client() {
    if [[ $1 == python-ipware ]]; then
        v/bin/python -c '
import python_ipware, sys
print(python_ipware.IpWare().get_client_ip({"HTTP_X_FORWARDED_FOR": sys.argv[1], "REMOTE_ADDR": "203.0.113.9"})[0])' "$2"
    else
        node client.js "${1%@*}" "$2"
    fi
}
P=203.0.113.9
# each VALUE, and what each library of npm finds
each() {
    local library value=$1
    for library in "${NODE[@]}"; do
        shift
        seen "${library%@*}: $value" "$1" "$(client "$library" "$value")"
    done
}
each 192.0.2.1 192.0.2.1 192.0.2.1 192.0.2.1 192.0.2.1 192.0.2.1 192.0.2.1
each 2001:db8::1 2001:db8::1 2001:db8::1 2001:db8::1 2001:db8::1 2001:db8::1 2001:db8::1
each '[2001:db8::1]:51000' $P $P $P $P $P '[2001:db8::1]:51000'
each 192.0.2.1:51000 192.0.2.1 192.0.2.1 $P 192.0.2.1 $P 192.0.2.1:51000
each 'unknown, 192.0.2.1' 192.0.2.1 192.0.2.1 192.0.2.1 $P 192.0.2.1 unknown
seen 'python-ipware: [2606:4700::1111]:51000' 2606:4700::1111 "$(client python-ipware '[2606:4700::1111]:51000')"
