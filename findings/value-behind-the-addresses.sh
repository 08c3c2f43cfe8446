#!/usr/bin/env bash
# A binary PROXY header with ALPN, and the request behind it
#
# The PROXY protocol (haproxy.org), section 2.2: the length of the header covers addresses and the values behind them, and
# what follows that length belongs to the application; receivers must skip values that they do not know.
# Guess: a library that gives the data behind the header begins them behind that length.
# Seen: proxy-protocol-js 4.0.6 (npm) begins them behind the addresses: the values come before the request. Without values,
# and with the command LOCAL, it gives the request alone. proxy-protocol 0.11.3 (Python) gives the value by its name.
# A server that feeds "data" to its parser sees a request that begins with the values. Such servers need an accelerator that
# sends addresses alone.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install proxy-protocol-js@4.0.6
pip_install proxy-protocol==0.11.3
ADDRESSES=c0000201c000020200010002
ALPN=0100026832
# header LENGTH_AND_REST: version 2, PROXY, TCP over IPv4
header() {
    echo "0d0a0d0a000d0a515549540a2111$1"
}
js() {
    node -p '
        const { V2ProxyProtocol } = require("proxy-protocol-js");
        const { data } = V2ProxyProtocol.parse(Buffer.concat([Buffer.from(process.argv[1], "hex"), Buffer.from("GET")]));
        JSON.stringify(Buffer.from(data).toString())' "$1"
}
seen 'proxy-protocol-js: addresses alone' '"GET"' "$(js "$(header "000c$ADDRESSES")")"
seen 'proxy-protocol-js: with ALPN' '"\u0001\u0000\u0002h2GET"' "$(js "$(header "0011$ADDRESSES$ALPN")")"
seen 'proxy-protocol: with ALPN' "192.0.2.1 b'h2'" "$(v/bin/python -c '
import sys
from proxyprotocol.v2 import ProxyProtocolV2
found = ProxyProtocolV2().unpack(bytes.fromhex(sys.argv[1]))
print(found.source[0], found.tlv.alpn)' "$(header "0011$ADDRESSES$ALPN")")"
