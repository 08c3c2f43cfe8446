#!/usr/bin/env bash
# an answer of three segments, of which the second begins below 2^32, and the third above 0
#
# RFC 9293, section 3.4: sequence numbers go on with 0 after 2^32 - 1. One connection of 4 GiB does so at least once, and
# one of 70 bytes may, since its first number is any.
# Guess: a library that puts segments together again knows this.
# Seen: TCPSession of Scapy 2.8.0 (Python) finds the answer where the numbers grow, and finds none, without an error,
# where those of the segments begin again.
# A count of answers in a trace by this library lacks one for each time; a test on traces should choose the first number.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install scapy==2.8.0
cat >read.py <<'PY'
import sys
from scapy.all import IP, TCP, Ether, Raw, TCPSession, rdpcap, sniff, wrpcap
from scapy.layers.http import HTTPResponse

answer = b"HTTP/1.1 200 OK\r\nContent-Length: 30\r\n\r\n" + b"abcdefghij" * 3
first = int(sys.argv[1])
def segment(flags, sequence, content=b""):
    transport = TCP(sport=80, dport=5000, flags=flags, seq=sequence % 2**32, ack=1)
    return Ether() / IP(src="192.0.2.1", dst="192.0.2.2") / transport / (Raw(content) if content else b"")
segments = [segment("SA", first)]
segments += [segment("PA", first + 1 + at, answer[at:at + 24]) for at in range(0, len(answer), 24)]
wrpcap("a.pcap", segments)
numbers = [packet[TCP].seq for packet in rdpcap("a.pcap")]
found = [bytes(packet[HTTPResponse].payload).decode() for packet in sniff(offline="a.pcap", session=TCPSession, quiet=True)
         if HTTPResponse in packet]
print(*numbers[1:], "->", *found or ["none"])
PY
content=abcdefghijabcdefghijabcdefghij
seen 'numbers that grow' "1001 1025 1049 -> $content" "$(v/bin/python read.py 1000 2>/dev/null)"
seen 'just below the end' "4294967196 4294967220 4294967244 -> $content" \
    "$(v/bin/python read.py 4294967195 2>/dev/null)"
seen 'across it, within the last segment' "4294967246 4294967270 4294967294 -> $content" \
    "$(v/bin/python read.py 4294967245 2>/dev/null)"
seen 'across it, before the last segment' '4294967257 4294967281 9 -> none' "$(v/bin/python read.py 4294967256 2>/dev/null)"
