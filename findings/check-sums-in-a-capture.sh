#!/usr/bin/env bash
# the link type 44000001 (hexadecimal) in the header of a pcap file
#
# draft-ietf-opsawg-pcap, section 4: the link type has the lower 16 bits of this word. Bit 4 of the first byte says that
# each packet ends with its check sum of the link, whose length the bits above give, in words of 16 bits: here Ethernet
# with a check sum of 4 bytes.
# Guess: readers take the lower 16 bits for the type, and leave the check sum where it is.
# Seen: Scapy 2.8.0 and dpkt 1.9.8 (Python) take the whole word for the type, 1140850689. So Scapy gives packets without
# any layer, after a warning.
# A capture with check sums shows nothing, although all its packets are those of Ethernet.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install scapy==2.8.0 dpkt==1.9.8
cat >read.py <<'PY'
import struct, sys
packet = bytes.fromhex("0200000000010200000000028899") + bytes(46)
word = int(sys.argv[2], 16)
if word > 0xFFFF:
    packet += b"\1\2\3\4"
with open("a.pcap", "wb") as file:
    file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, word))
    file.write(struct.pack("<IIII", 1, 0, len(packet), len(packet)) + packet)
if sys.argv[1] == "scapy":
    from scapy.utils import PcapReader
    import scapy.layers.l2
    print(PcapReader("a.pcap").read_packet().name)
else:
    import dpkt
    with open("a.pcap", "rb") as file:
        print(dpkt.pcap.Reader(file).datalink())
PY
seen 'scapy: 1' Ethernet "$(v/bin/python read.py scapy 1 2>/dev/null)"
seen 'scapy: 44000001' Raw "$(v/bin/python read.py scapy 44000001 2>/dev/null)"
seen 'dpkt: 1' 1 "$(v/bin/python read.py dpkt 1)"
seen 'dpkt: 44000001' 1140850689 "$(v/bin/python read.py dpkt 44000001)"
