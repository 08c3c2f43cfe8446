#!/usr/bin/env bash
# a datagram of UDP behind a label of MPLS, and behind a tag of the type 9100
#
# RFC 3032, section 3: a frame of the type 8847 has labels of four bytes, the last one marked, and then the packet. 9100 is the
# type that switches used for the outer of two tags before 802.1ad gave it 88a8.
# Guess: libraries for captures find the datagram in both, as they do behind tags of the types 8100 and 88a8.
# Seen: Scapy 2.8.0 (Python) finds it in neither, and gives bytes, until one loads its part for MPLS.
# github.com/google/gopacket 1.1.19 (Go) finds it behind the label, and not behind 9100. dpkt 1.9.8 (Python) finds it in both.
# Captures of a provider's network are empty of addresses.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install scapy==2.8.0 dpkt==1.9.8
DATAGRAM=4500001c0000000040110000c0000201c63364020035003500080000
# frame HEX: a frame with this behind its two addresses, and the datagram
frame() {
    echo "000000000000000000000000$1$DATAGRAM"
}
with_scapy() {
    v/bin/python -c '
import sys
from scapy.all import Ether, UDP, load_contrib
if sys.argv[2:]:
    load_contrib("mpls")
print(UDP in Ether(bytes.fromhex(sys.argv[1])))' "$@" 2>/dev/null
}
with_dpkt() {
    v/bin/python -c '
import dpkt, sys
layer = dpkt.ethernet.Ethernet(bytes.fromhex(sys.argv[1]))
while not isinstance(layer, (bytes, dpkt.udp.UDP)):
    layer = layer.data
print(isinstance(layer, dpkt.udp.UDP))' "$1"
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
	frame, err := hex.DecodeString(os.Args[1])
	if err != nil {
		panic(err)
	}
	packet := gopacket.NewPacket(frame, layers.LayerTypeEthernet, gopacket.Default)
	fmt.Println(packet.Layer(layers.LayerTypeUDP) != nil)
}
GO
go mod tidy 2>/dev/null
go build -o find .
tags=$(frame 88a80001810000020800) label=$(frame 8847000011ff) old=$(frame 91000001810000020800)
seen 'Scapy: 88a8' True "$(with_scapy "$tags")"
seen 'Scapy: label' False "$(with_scapy "$label")"
seen 'Scapy: label, with its part for MPLS' True "$(with_scapy "$label" mpls)"
seen 'Scapy: 9100' False "$(with_scapy "$old")"
seen 'gopacket: 88a8' true "$(./find "$tags")"
seen 'gopacket: label' true "$(./find "$label")"
seen 'gopacket: 9100' false "$(./find "$old")"
for kind in "$tags" "$label" "$old"; do
    seen "dpkt: ${kind:24:4}" True "$(with_dpkt "$kind")"
done
