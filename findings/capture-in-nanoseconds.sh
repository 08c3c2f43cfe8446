#!/usr/bin/env bash
# a pcap file that begins with a1b23c4d
#
# draft-ietf-opsawg-pcap, section 4: this number says that times have nanoseconds, and a1b2c3d4 that they have
# microseconds; either may stand in both orders of bytes. Nothing else in the file differs.
# Guess: a reader that knows both orders of bytes knows both numbers.
# Seen: pcap-parser 0.2.1 (npm) reads both orders with microseconds, and refuses each file with nanoseconds: "unknown
# magic number". dpkt 1.9.8 (Python) reads all four.
# A capture of a card with a clock of its own, or of `tcpdump --nano`, is unknown to it.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install pcap-parser@0.2.1
pip_install dpkt==1.9.8
cat >write.py <<'PY'
import struct, sys
order, number = sys.argv[1], int(sys.argv[2], 16)
with open("a.pcap", "wb") as file:
    file.write(struct.pack(order + "IHHiIII", number, 2, 4, 0, 0, 65535, 1))
    file.write(struct.pack(order + "IIII", 7, 500, 60, 60) + bytes(60))
PY
cat >read.js <<'JS'
const parser = require("pcap-parser").parse("a.pcap");
parser.on("packet", ({ header }) => console.log(header.timestampSeconds, header.timestampMicroseconds));
parser.on("error", (error) => console.log(String(error.message ?? error).slice(0, 20)));
JS
# row ORDER NUMBER OF_PCAP_PARSER OF_DPKT
row() {
    v/bin/python write.py "$1" "$2"
    seen "pcap-parser: $2 $1" "$3" "$(node read.js 2>&1)"
    seen "dpkt: $2 $1" "$4" "$(v/bin/python -c '
import dpkt
with open("a.pcap", "rb") as file:
    print(*(time for time, _ in dpkt.pcap.Reader(file)))')"
}
for order in '<' '>'; do
    row "$order" a1b2c3d4 '7 500' 7.0005
    row "$order" a1b23c4d 'unknown magic number' 7.000000500
done
