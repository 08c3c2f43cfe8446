#!/usr/bin/env bash
# A capture of pcapng without if_tsresol
#
# draft-ietf-opsawg-pcapng, section 4.2: if_tsresol states the unit of the times, a negative power of 10 or of 2; without it they are
# microseconds.
# Guess: libraries for pcapng give this packet the time 1 January 2026, 00:00:00.5.
# Seen: pcap-file 2.0.0 (Rust) takes every time for nanoseconds, and so gives 21 January 1970, and for milliseconds and 1024ths of a
# second days of 1970, too. python-pcapng 2.1.1 (Python) gives the right time in all four units. For files of pcap pcap-file is right.
# No packet is lost, and its times have the right order: rates are a thousand times as high.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install python-pcapng==2.1.1
v/bin/python - <<'PY'
import struct
def block(kind, body):
    length = struct.pack("<I", 12 + len(body))
    return struct.pack("<I", kind) + length + body + length
def capture(name, options, ticks):
    with open(name, "wb") as file:
        file.write(block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)))
        file.write(block(1, struct.pack("<HHI", 1, 0, 65535) + options))
        file.write(block(6, struct.pack("<IIIII60x", 0, ticks >> 32, ticks & 0xFFFFFFFF, 60, 60)))
unit = lambda code: struct.pack("<HHB3xI", 9, 1, code, 0)
capture("default", b"", 1767225600500000)
capture("nanoseconds", unit(9), 1767225600500000000)
capture("milliseconds", unit(3), 1767225600500)
capture("1024ths", unit(0x80 | 10), 1767225600 * 1024 + 512)
with open("pcap", "wb") as file:
    file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
    file.write(struct.pack("<IIII60x", 1767225600, 500000, 60, 60))
PY
mkdir src
cat >Cargo.toml <<'TOML'
[package]
name = "finding"
version = "1.0.0"
edition = "2024"
[dependencies]
pcap-file = "=2.0.0"
TOML
cat >src/main.rs <<'RUST'
use pcap_file::{pcap::PcapReader, pcapng::{Block, PcapNgReader}};

fn main() {
    let name = std::env::args().nth(1).unwrap();
    let file = std::fs::File::open(&name).unwrap();
    if name == "pcap" {
        println!("{:?}", PcapReader::new(file).unwrap().next_packet().unwrap().unwrap().timestamp);
        return;
    }
    let mut reader = PcapNgReader::new(file).unwrap();
    while let Some(block) = reader.next_block() {
        if let Block::EnhancedPacket(packet) = block.unwrap() {
            println!("{:?}", packet.timestamp);
        }
    }
}
RUST
CARGO_TARGET_DIR=$FOLDER/target cargo build --quiet
time_python() {
    v/bin/python -c '
import pcapng, sys
with open(sys.argv[1], "rb") as file:
    for block in pcapng.FileScanner(file):
        if isinstance(block, pcapng.blocks.EnhancedPacket):
            print(f"{block.timestamp}s")' "$1"
}
for name in default nanoseconds milliseconds 1024ths; do
    seen "python-pcapng: $name" 1767225600.5s "$(time_python $name)"
done
seen 'pcap-file: pcap' 1767225600.5s "$(target/debug/finding pcap)"
seen 'pcap-file: nanoseconds' 1767225600.5s "$(target/debug/finding nanoseconds)"
seen 'pcap-file: default' 1767225.6005s "$(target/debug/finding default)"
seen 'pcap-file: milliseconds' 1767.2256005s "$(target/debug/finding milliseconds)"
seen 'pcap-file: 1024ths' 1809.639014912s "$(target/debug/finding 1024ths)"
