#!/usr/bin/env bash
# A Simple Packet Block in a pcapng file
#
# draft-ietf-opsawg-pcapng, section 4.4: the block holds a packet of the first interface, without a time. Section 4.2: a
# SnapLen of 0 means that packets have no limit.
# Guess: readers give the packet, and say that it has no time.
# Seen: dpkt 1.9.8 (Python) passes over the block. Scapy 2.8.0 (Python) gives a packet without a byte, as it takes
# SnapLen 0 for the number of bytes that are there. python-pcapng 2.1.1 (Python) gives the packet, without a time. With
# a SnapLen of 64, Scapy gives it, too.
# A capture by a small tool, for which this block is made, looks empty.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install dpkt==1.9.8 scapy==2.8.0 python-pcapng==2.1.1
cat >write.py <<'PY'
import struct, sys

def block(kind, content):
    size = len(content) + 12
    return struct.pack("<II", kind, size) + content + struct.pack("<I", size)

packet = bytes.fromhex("0200000000010200000000020800") + b"hello!"
with open("a.pcapng", "wb") as file:
    file.write(block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)))
    file.write(block(1, struct.pack("<HHI", 1, 0, int(sys.argv[1]))))
    file.write(block(3, struct.pack("<I", len(packet)) + packet))
PY
cat >read.py <<'PY'
import sys
with open("a.pcapng", "rb") as file:
    if sys.argv[1] == "dpkt":
        import dpkt
        packets = [packet for _, packet in dpkt.pcapng.Reader(file)]
    elif sys.argv[1] == "scapy":
        from scapy.utils import RawPcapNgReader
        packets = [packet for packet, _ in RawPcapNgReader("a.pcapng")]
    else:
        import pcapng
        packets = [block.packet_data for block in pcapng.FileScanner(file) if hasattr(block, "packet_data")]
print(*(packet[14:].decode() or "empty" for packet in packets) if packets else ["none"])
PY
for limit in 0 64; do
    v/bin/python write.py $limit
    for library in dpkt scapy pcapng; do
        case $library-$limit in
        dpkt-*) expected=none ;;
        scapy-0) expected=empty ;;
        *) expected='hello!' ;;
        esac
        seen "$library, SnapLen $limit" "$expected" "$(v/bin/python read.py $library 2>/dev/null)"
    done
done
