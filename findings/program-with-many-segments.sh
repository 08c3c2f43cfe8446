#!/usr/bin/env bash
# a file of ELF with 70000 segments
#
# elf(5), e_phnum: where a file has 65535 program headers or more, the field holds ffff (PN_XNUM), and sh_info of the
# first section header the number; e_shnum is 0, and sh_size the number, where there are as many sections. Linux writes
# core files of processes with so many mappings that way.
# Guess: a library that knows the one of the two knows the other.
# Seen: debug/elf of Go 1.26 gives 65535 segments, without an error, and all of 70000 sections. LIEF 1.0.0 (Python) gives
# 10000 segments, and no sections. pyelftools 0.33 (Python) gives 70000 of each.
# The last mappings of a large process, its stack among them, are missing where a tool reads its core file.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install pyelftools==0.33 lief==1.0.0
cat >write.py <<'PY'
import struct

COUNT = 70000

def header(kind, program_headers, section_headers, counts):
    return b"\x7fELF\2\1\1".ljust(16, b"\0") + struct.pack(
        "<HHIQQQIHHHHHH", kind, 62, 1, 0, program_headers, section_headers, 0, 64, 56, counts[0], 64, *counts[1:])

def section(name=0, kind=0, offset=0, size=0, link=0, info=0):
    return struct.pack("<IIQQQQIIQQ", name, kind, 0, 0, offset, size, link, info, 1, 0)

with open("segments", "wb") as file:
    file.write(header(4, 64, 64 + 56 * COUNT, (0xffff, 1, 0)))
    for number in range(COUNT):
        file.write(struct.pack("<IIQQQQQQ", 1, 4, 64, 0x1000 * number, 0, 0, 0x1000, 0x1000))
    file.write(section(info=COUNT))
names = b"\0.text\0.shstrtab\0"
with open("sections", "wb") as file:
    file.write(header(1, 0, 64, (0, 0, 0xffff)))
    file.write(section(size=COUNT, link=COUNT - 1))
    file.write(section(1, 1) * (COUNT - 2))
    file.write(section(7, 3, 64 + 64 * COUNT, len(names)) + names)
PY
v/bin/python write.py
cat >count.py <<'PY'
import lief, sys
from elftools.elf.elffile import ELFFile
if sys.argv[1] == "pyelftools":
    with open(sys.argv[2], "rb") as file:
        read = ELFFile(file)
        print(getattr(read, f"num_{sys.argv[2]}")())
else:
    lief.logging.disable()
    print(len(getattr(lief.parse(sys.argv[2]), sys.argv[2])))
PY
cat >go.mod <<'GO'
module finding
go 1.26
GO
cat >main.go <<'GO'
package main

import (
	"debug/elf"
	"fmt"
	"os"
)

func main() {
	read, err := elf.Open(os.Args[1])
	if err != nil {
		panic(err)
	}
	if os.Args[1] == "segments" {
		fmt.Println(len(read.Progs))
	} else {
		fmt.Println(len(read.Sections))
	}
}
GO
go build -o count .
go version
seen 'pyelftools: segments' 70000 "$(v/bin/python count.py pyelftools segments)"
seen 'Go: segments' 65535 "$(./count segments)"
seen 'LIEF: segments' 10000 "$(v/bin/python count.py lief segments)"
seen 'pyelftools: sections' 70000 "$(v/bin/python count.py pyelftools sections)"
seen 'Go: sections' 70000 "$(./count sections)"
seen 'LIEF: sections' 0 "$(v/bin/python count.py lief sections)"
