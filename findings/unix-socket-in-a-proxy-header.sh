#!/usr/bin/env bash
# A binary PROXY header for a UNIX socket, 0x31
#
# The PROXY protocol (haproxy.org), section 2.2: this family has two paths of 108 bytes each.
# Guess: a receiver that does not know the family goes on without addresses, as it should with AF_UNSPEC.
# Seen: @balena/proxy-protocol-parser 1.0.2 (npm) takes each family but IPv4 for IPv6: the path /a is the address 2f61::0.
# proxy-protocol 0.11.3 (Python) gives the paths.
# Clients of a local socket are all from a network of IPv6 that nobody has.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install @balena/proxy-protocol-parser@1.0.2
pip_install proxy-protocol==0.11.3
HEADER=$(python3 -c '
paths = b"/a".ljust(108, b"\0") + b"/b".ljust(108, b"\0")
print((b"\r\n\r\n\0\r\nQUIT\n\x21\x31" + len(paths).to_bytes(2, "big") + paths).hex())')
seen 'proxy-protocol' '/a /b' "$(v/bin/python -c '
import sys
from proxyprotocol.v2 import ProxyProtocolV2
found = ProxyProtocolV2().unpack(bytes.fromhex(sys.argv[1]))
print(found.source, found.dest)' "$HEADER")"
seen '@balena/proxy-protocol-parser' 'IPv6 2f61::0' "$(node -p '
    const { decode } = require("@balena/proxy-protocol-parser");
    const { remoteFamily, remoteAddress } = decode(Buffer.from(process.argv[1], "hex"));
    remoteFamily + " " + remoteAddress' "$HEADER")"
