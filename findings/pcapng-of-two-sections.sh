#!/usr/bin/env bash
# cat a.pcapng b.pcapng
#
# draft-ietf-opsawg-pcapng, section 4.1: a file has one or more sections, so that files can be joined end to end;
# each section describes its own interfaces. Section 4.2: each interface has its resolution of time (if_tsresol), and
# may have an offset (if_tsoffset).
# Guess: each reader gives the packets of both sections with their times.
# Seen: dpkt 1.9.8 and Scapy 2.8.0 (Python) go on with the interfaces of the first section: a packet in microseconds,
# after a section in nanoseconds, is dated to January 1970. python-pcapng 2.1.1 reads both sections. Only dpkt adds
# the offset; the other two date such a packet to 1970.
# To join the captures of two cores or hosts, use Wireshark's mergecap, which writes one section.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install dpkt==1.9.8 scapy==2.8.0 python-pcapng==2.1.1
cat >pcaps.py <<'PY'
import struct

def block(kind, body):
    body += bytes(-len(body) % 4)
    size = struct.pack("<I", len(body) + 12)
    return struct.pack("<I", kind) + size + body + size

def option(code, value):
    return struct.pack("<HH", code, len(value)) + value + bytes(-len(value) % 4)

def section(resolution, time, offset=None):
    options = option(9, bytes([resolution]))
    if offset is not None:
        options += option(14, struct.pack("<q", offset))
    header = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
    interface = block(1, struct.pack("<HHI", 1, 0, 0) + options + option(0, b""))
    packet = block(6, struct.pack("<IIIII", 0, time >> 32, time & 0xFFFFFFFF, 14, 14) + bytes(14))
    return header + interface + packet

SECOND = 1700000000
two = section(9, SECOND * 10**9 + 250 * 10**6) + section(6, SECOND * 10**6 + 250 * 10**3)
open("two.pcapng", "wb").write(two)
open("offset.pcapng", "wb").write(section(6, 250 * 10**3, SECOND))
PY
v/bin/python pcaps.py
cat >read.py <<'PY'
import logging, sys

def dpkt(file):
    from dpkt.pcapng import Reader
    return [time for time, _ in Reader(file)]

def scapy(file):
    logging.disable()
    from scapy.utils import PcapNgReader
    return [packet.time for packet in PcapNgReader(file)]

def pcapng(file):
    from pcapng import FileScanner
    return [block.timestamp for block in FileScanner(file) if hasattr(block, "timestamp")]

with open(sys.argv[2], "rb") as file:
    print(*("%.5f" % time for time in globals()[sys.argv[1]](file)))
PY
seen 'dpkt: two sections' '1700000000.25000 1700000.00025' "$(v/bin/python read.py dpkt two.pcapng)"
seen 'Scapy: two sections' '1700000000.25000 1700000.00025' "$(v/bin/python read.py scapy two.pcapng)"
seen 'python-pcapng: two sections' '1700000000.25000 1700000000.25000' "$(v/bin/python read.py pcapng two.pcapng)"
seen 'dpkt: an offset' 1700000000.25000 "$(v/bin/python read.py dpkt offset.pcapng)"
seen 'Scapy: an offset' 0.25000 "$(v/bin/python read.py scapy offset.pcapng)"
seen 'python-pcapng: an offset' 0.25000 "$(v/bin/python read.py pcapng offset.pcapng)"
