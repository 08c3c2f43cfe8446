#!/usr/bin/env bash
# a packet of IPv6 with a segment routing header, and VXLAN at the port of Linux
#
# RFC 8754: a routing header of type 4 holds a list of segments. Its length is in the place where each extension header has it, so
# that a reader can pass over it. Linux sends VXLAN to port 8472 by default, as it did before 4789 was assigned.
# Guess: dissectors that know IPv6 and VXLAN find what is inside.
# Seen: gopacket 1.1.19 (Go) ends at the routing header with an error, and gives no UDP; it finds VXLAN at 4789 alone. Scapy 2.8.0
# (Python) finds UDP behind the header, and VXLAN at both ports.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install scapy==2.8.0
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
	bytes, _ := hex.DecodeString(os.Args[1])
	first := layers.LayerTypeIPv4
	if bytes[0]>>4 == 6 {
		first = layers.LayerTypeIPv6
	}
	packet := gopacket.NewPacket(bytes, first, gopacket.Default)
	for _, layer := range packet.Layers() {
		fmt.Print(layer.LayerType(), " ")
	}
	if failure := packet.ErrorLayer(); failure != nil {
		fmt.Print(failure.Error())
	}
	fmt.Println()
}
GO
go mod tidy 2>/dev/null
go build -o dissect .
cat >packets.py <<'PY'
import sys
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6, IPv6ExtHdrSegmentRouting
from scapy.layers.l2 import Ether
from scapy.layers.vxlan import VXLAN

addresses = {"src": "2001:db8::1", "dst": "2001:db8::2"}
inner = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / IP(src="198.51.100.1", dst="198.51.100.2") / UDP() / b"a"

def tunnel(port):
    outer = IP(src="192.0.2.1", dst="192.0.2.2") / UDP(sport=50000, dport=port)
    return bytes(outer / bytes(VXLAN(vni=7, flags=8) / inner))

segments = bytes(IPv6(**addresses) / IPv6ExtHdrSegmentRouting(addresses=["2001:db8::9"]) / UDP(sport=1, dport=2) / b"a")
first = {4: IP, 6: IPv6}
data = eval(sys.argv[1])
print(data.hex() if sys.argv[2] == "hex" else " ".join(layer.__name__ for layer in first[data[0] >> 4](data).layers()))
PY
python() {
    v/bin/python packets.py "$@" 2>/dev/null
}
seen 'Scapy: segments' 'IPv6 IPv6ExtHdrSegmentRouting UDP Raw' "$(python segments layers)"
seen 'gopacket: segments' 'IPv6 DecodeFailure Unknown IPv6 routing header type 4' "$(./dissect "$(python segments hex)")"
for port in 4789 8472; do
    seen "Scapy: VXLAN at $port" 'IP UDP VXLAN Ether IP UDP Raw' "$(python "tunnel($port)" layers)"
done
seen 'gopacket: VXLAN at 4789' 'IPv4 UDP VXLAN Ethernet IPv4 UDP' "$(./dissect "$(python 'tunnel(4789)' hex)" | cut -d' ' -f1-6)"
seen 'gopacket: VXLAN at 8472' 'IPv4 UDP Payload ' "$(./dissect "$(python 'tunnel(8472)' hex)")"
