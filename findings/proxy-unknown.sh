#!/usr/bin/env bash
# PROXY UNKNOWN
#
# The PROXY protocol (haproxy.org, section 2.1): a sender that knows no addresses writes this; what stands between
# UNKNOWN and the end of the line does not count. A receiver goes on with the addresses of the connection.
# Guess: the lines that one library writes, the others read.
# Seen: proxy-protocol 0.11.3 (Python) writes the line with four blanks. proxy-protocol-js 4.0.6 (npm) refuses it
# with and without them; @balena/proxy-protocol-parser 1.0.2 (npm) reports an IPv6 peer without an address or,
# without the blanks, one whose address is the end of the line.
# An accelerator that speaks for itself, or for clients of a Unix socket, works with most servers, and is refused by
# the first of these, and counted as an odd client by the second.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install proxy-protocol==0.11.3
v/bin/python -c '
from proxyprotocol.result import ProxyResultUnknown
from proxyprotocol.v1 import ProxyProtocolV1
open("written", "wb").write(ProxyProtocolV1().pack(ProxyResultUnknown()))'
printf 'PROXY UNKNOWN\r\n' >short
printf 'PROXY TCP4 192.0.2.1 198.51.100.1 1000 80\r\n' >tcp4
seen 'proxy-protocol writes' 'PROXY UNKNOWN    \r\n' "$(sed -z 's/\r\n/\\r\\n/' written)"

npm_install proxy-protocol-js@4.0.6 @balena/proxy-protocol-parser@1.0.2
js() {
    node -e '
        const { V1ProxyProtocol } = require("proxy-protocol-js");
        const line = require("fs").readFileSync(process.argv[1], "latin1");
        try { console.log(V1ProxyProtocol.parse(line).source.ipAddress); }
        catch (error) { console.log(error.constructor.name); }' "$1"
}
balena() {
    node -e '
        const { v1_decode } = require("@balena/proxy-protocol-parser");
        const found = v1_decode(require("fs").readFileSync(process.argv[1]));
        console.log(found.remoteFamily, JSON.stringify(found.remoteAddress));' "$1"
}
seen 'proxy-protocol-js: TCP4 ...' 192.0.2.1 "$(js tcp4)"
seen 'proxy-protocol-js: as written' V1ProxyProtocolParseError "$(js written)"
seen 'proxy-protocol-js: without the blanks' V1ProxyProtocolParseError "$(js short)"
seen '@balena/...: TCP4 ...' 'IPv4 "192.0.2.1"' "$(balena tcp4)"
seen '@balena/...: as written' 'IPv6 ""' "$(balena written)"
seen '@balena/...: without the blanks' 'IPv6 "\r\n"' "$(balena short)"
