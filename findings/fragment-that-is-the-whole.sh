#!/usr/bin/env bash
# A packet of IPv6 with a fragment header, offset 0 and no more fragments
#
# RFC 8200, section 4.5, and RFC 6946: such a fragment is the whole packet, and is processed as that. Translators between the
# versions of IP sent them, as RFC 8021 says.
# Guess: a library for captures finds the UDP datagram in it.
# Seen: github.com/google/gopacket 1.1.19 (Go) finds a fragment alone, as for the first of several. Scapy 2.8.0 and dpkt 1.9.8
# (Python) find the datagram.
# Statistics by port miss these packets.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install scapy==2.8.0 dpkt==1.9.8
ADDRESSES=$(printf '%032x%032x' 1 2)
FRAGMENT=6000000000102c40${ADDRESSES}11000000000000010035003500080000
PLAIN=6000000000081140${ADDRESSES}0035003500080000
python() {
    v/bin/python -c '
import logging, sys
logging.disable()
library, packet = sys.argv[1], bytes.fromhex(sys.argv[2])
if library == "scapy":
    from scapy.all import IPv6, UDP
    print(UDP in IPv6(packet))
else:
    import dpkt
    print(isinstance(dpkt.ip6.IP6(packet).data, dpkt.udp.UDP))' "$@" 2>/dev/null
}
cat >go.mod <<'GO'
module finding
go 1.26
require github.com/google/gopacket v1.1.19
GO
cat >main.go <<'GO'
package main

import (
	"encoding/hex"
	"fmt"
	"os"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
)

func main() {
	data, err := hex.DecodeString(os.Args[1])
	if err != nil {
		panic(err)
	}
	packet := gopacket.NewPacket(data, layers.LayerTypeIPv6, gopacket.Default)
	for _, layer := range packet.Layers() {
		fmt.Print(layer.LayerType(), " ")
	}
	fmt.Println()
}
GO
go mod tidy 2>/dev/null
go build -o read .
for library in scapy dpkt; do
    seen "$library: UDP, plain" True "$(python $library "$PLAIN")"
    seen "$library: UDP, in a fragment" True "$(python $library "$FRAGMENT")"
done
seen 'gopacket: plain' 'IPv6 UDP ' "$(./read "$PLAIN")"
seen 'gopacket: in a fragment' 'IPv6 IPv6Fragment Fragment ' "$(./read "$FRAGMENT")"
