#!/usr/bin/env bash
# four bytes of data in UDP, and options behind them
#
# RFC 768: the length of UDP counts header and data. RFC 9868: a packet may be longer than that; UDP options stand in the rest, and
# a receiver that does not know them gives the data alone.
# Guess: dissectors end the data at the length of UDP, which each of them reads.
# Seen: dpkt 1.9.8 (Python) gives the options as a part of the data, over IPv4 and over IPv6; its field ulen has 12. Scapy 2.8.0
# (Python), gopacket 1.1.19 (Go) and etherparse 0.19.0 (Rust) give four bytes.
# A parser of DNS or QUIC behind dpkt finds bytes after the message that no receiver ever sees.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install dpkt==1.9.8 scapy==2.8.0
cat >packet.py <<'PY'
import struct, sys
import dpkt
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.packet import Raw

options = bytes([1, 1, 1, 1, 1, 0])
udp = struct.pack(">HHHH", 1000, 5000, 12, 0) + b"data" + options
four = bytes(IP(src="192.0.2.1", dst="192.0.2.2", proto=17) / Raw(udp))
six = bytes(IPv6(src="2001:db8::1", dst="2001:db8::2", nh=17) / Raw(udp))
PY
python() {
    v/bin/python -c "from packet import *; print($1)"
}
packet=$(python 'four.hex()')
mkdir rust
cat >rust/Cargo.toml <<'TOML'
[package]
name = "dissect"
version = "0.0.0"
edition = "2021"

[dependencies]
etherparse = "=0.19.0"
TOML
mkdir rust/src
cat >rust/src/main.rs <<'RS'
use etherparse::{SlicedPacket, TransportSlice};

fn main() {
    let hex = std::env::args().nth(1).unwrap();
    let bytes: Vec<u8> = (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect();
    let packet = SlicedPacket::from_ip(&bytes).unwrap();
    if let Some(TransportSlice::Udp(udp)) = packet.transport {
        println!("{:?}", std::str::from_utf8(udp.payload()).unwrap());
    }
}
RS
CARGO_TARGET_DIR=$FOLDER/target cargo build --quiet --manifest-path rust/Cargo.toml
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
	packet := gopacket.NewPacket(bytes, layers.LayerTypeIPv4, gopacket.Default)
	fmt.Printf("%q\n", packet.TransportLayer().LayerPayload())
}
GO
go mod tidy 2>/dev/null
go build -o dissect .
seen 'dpkt: IPv4' "b'data\\x01\\x01\\x01\\x01\\x01\\x00'" "$(python 'dpkt.ip.IP(four).data.data')"
seen 'dpkt: IPv6' "b'data\\x01\\x01\\x01\\x01\\x01\\x00'" "$(python 'dpkt.ip6.IP6(six).data.data')"
seen 'dpkt: length of UDP' 12 "$(python 'dpkt.ip.IP(four).data.ulen')"
seen 'Scapy: IPv4' "b'data'" "$(python 'IP(four)[UDP][Raw].load')"
seen 'gopacket: IPv4' '"data"' "$(./dissect "$packet")"
seen 'etherparse: IPv4' '"data"' "$(target/debug/dissect "$packet")"
