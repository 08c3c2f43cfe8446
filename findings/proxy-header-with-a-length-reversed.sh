#!/usr/bin/env bash
# A binary PROXY header that a library wrote for a connection from 192.0.2.1
#
# The PROXY protocol's specification, section 2.2: the length of the rest has two bytes in network order, and the
# command is LOCAL (0) or PROXY (1); a receiver has to ignore the addresses of LOCAL.
# Guess: a library that writes headers of version 2 gives one that receivers understand.
# Seen: @balena/proxy-protocol-parser 1.0.2 (npm) writes the length with its low byte first: 3072 for 12. It writes
# the command LOCAL, too, so that the client's address would not count even with the right length. proxy-protocol
# 0.11.3 (Python) waits for 3060 bytes more; it reads the same header with both bytes corrected. The npm library's own
# decoder reads what it wrote.
# A server behind such a sender seems to hang, or takes the first request for addresses.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install @balena/proxy-protocol-parser@1.0.2
cat >write.js <<'JS'
const { v2_encode, v2_decode } = require("@balena/proxy-protocol-parser");
const header = v2_encode({
    remoteFamily: "IPv4", remoteAddress: "192.0.2.1", remotePort: 1,
    localAddress: "192.0.2.2", localPort: 2,
});
console.log(process.argv[2] === "read" ? v2_decode(header).remoteAddress : header.toString("hex"));
JS
HEADER=$(node write.js)
SIGNATURE=0d0a0d0a000d0a515549540a
ADDRESSES=c0000201c000020200010002
seen 'written' "${SIGNATURE}20110c00$ADDRESSES" "$HEADER"
seen 'read by the library itself' 192.0.2.1 "$(node write.js read)"

pip_install proxy-protocol==0.11.3
cat >read.py <<'PY'
import sys
from proxyprotocol import ProxyProtocolIncompleteError
from proxyprotocol.v2 import ProxyProtocolV2
try:
    print(ProxyProtocolV2().unpack(bytes.fromhex(sys.argv[1])).source)
except ProxyProtocolIncompleteError as error:
    print(f"{error.want_read.want_bytes} bytes more")
PY
seen 'read by proxy-protocol' '3060 bytes more' "$(v/bin/python read.py "$HEADER")"
seen 'with the length and PROXY' "(IPv4Address('192.0.2.1'), 1)" \
    "$(v/bin/python read.py "${SIGNATURE}2111000c$ADDRESSES")"
