#!/usr/bin/env bash
# if_tsoffset, an option of an interface in a pcapng file
#
# draft-ietf-opsawg-pcapng, section 4.2: the number of seconds that a reader adds to the time of each packet of the
# interface.
# Guess: readers that know the option beside it, if_tsresol, add the offset.
# Seen: Scapy 2.8.0 and python-pcapng 2.1.1 (both Python) do not, and date the packets at the beginning of 1970, where a
# tool has put the start of its capture into the option. dpkt 1.9.8 (Python) adds it.
# Times of packets and of log lines do not meet then.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install dpkt==1.9.8 scapy==2.8.0 python-pcapng==2.1.1
cat >write.py <<'PY'
import struct, sys

def block(kind, content):
    size = len(content) + 12
    return struct.pack("<II", kind, size) + content + struct.pack("<I", size)

packet = bytes.fromhex("0200000000010200000000020800") + b"hello!"
options = struct.pack("<HHqHH", 14, 8, 1700000000, 0, 0)
time = 5_000_000  # microseconds
with open("a.pcapng", "wb") as file:
    file.write(block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)))
    file.write(block(1, struct.pack("<HHI", 1, 0, 64) + options))
    file.write(block(6, struct.pack("<IIIII", 0, 0, time, len(packet), len(packet)) + packet))
PY
cat >read.py <<'PY'
import sys
with open("a.pcapng", "rb") as file:
    if sys.argv[1] == "dpkt":
        import dpkt
        times = [time for time, _ in dpkt.pcapng.Reader(file)]
    elif sys.argv[1] == "scapy":
        from scapy.utils import PcapNgReader
        times = [packet.time for packet in PcapNgReader("a.pcapng")]
    else:
        import pcapng
        times = [block.timestamp for block in pcapng.FileScanner(file) if hasattr(block, "packet_data")]
print(*(int(time) for time in times))
PY
v/bin/python write.py
seen 'dpkt' 1700000005 "$(v/bin/python read.py dpkt)"
seen 'scapy' 5 "$(v/bin/python read.py scapy 2>/dev/null)"
seen 'python-pcapng' 5 "$(v/bin/python read.py pcapng)"
