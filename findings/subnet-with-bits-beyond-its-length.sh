#!/usr/bin/env bash
# 192.0.2.129, of which 20 bits go to the server, in the option CLIENT-SUBNET of EDNS
#
# RFC 7871, section 6: the address is cut to the bits of its length, and filled with bits of 0 to a whole octet. Section
# 7.1.2: a server that finds another bit set there should answer FORMERR.
# Guess: a library that cuts the address to three octets clears the last four bits, too.
# Seen: dns-packet 5.6.1 (npm) writes c0 00 02, so that 192.0.2.0/20 stands where 192.0.0.0/20 should. dnspython 2.9.2
# (Python) writes c0 00 00.
# A length of whole octets, as in the examples (/24, /56), never shows it.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install dns-packet@5.6.1
js() {
    node -p '
        const packet = require("dns-packet");
        const option = { code: "CLIENT_SUBNET", ip: process.argv[1], sourcePrefixLength: Number(process.argv[2]) };
        const message = { additionals: [{ type: "OPT", name: ".", options: [option] }] };
        packet.decode(packet.encode(message)).additionals[0].options[0].data.toString("hex")' "$@"
}
pip_install dnspython==2.9.2
python() {
    v/bin/python -c '
import dns.edns, sys
print(dns.edns.ECSOption(sys.argv[1], int(sys.argv[2])).to_wire().hex())' "$@"
}
# family, length, length of the answer, address
seen 'dns-packet: 24 bits' 00011800c00002 "$(js 192.0.2.129 24)"
seen 'dnspython: 24 bits' 00011800c00002 "$(python 192.0.2.129 24)"
seen 'dns-packet: 20 bits' 00011400c00002 "$(js 192.0.2.129 20)"
seen 'dnspython: 20 bits' 00011400c00000 "$(python 192.0.2.129 20)"
seen 'dns-packet: IPv6, 44 bits' 00022c0020010db80012 "$(js 2001:db8:12:3456:: 44)"
seen 'dnspython: IPv6, 44 bits' 00022c0020010db80010 "$(python 2001:db8:12:3456:: 44)"
