#!/usr/bin/env bash
# A file of xz with a filter before LZMA2
#
# The .xz file format 1.2.1, section 5.3: delta and the filters for code of processors are filters of the format, up to
# three of them before LZMA2. Section 2.1.1.2: the check may be SHA-256.
# Guess: libraries that read .xz files read what `xz --x86` and `xz --check=sha256` write, as both are options of the tool.
# Seen: github.com/ulikunitz/xz 0.5.17 (Go) refuses each file with a filter before LZMA2, with "unsupported filter count".
# xz-decompress 0.2.3 (npm) refuses such files, and SHA-256, and tells the number of an error. cramjam 2.14.0 (Python) and
# Python's own lzma read all of them.
# Kernels and firmware that are packed with such a filter cannot be read.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install cramjam==2.14.0
npm_install xz-decompress@0.2.3
v/bin/python -c '
import lzma
last = {"id": lzma.FILTER_LZMA2, "preset": 6}
x86, delta = {"id": lzma.FILTER_X86}, {"id": lzma.FILTER_DELTA, "dist": 1}
for name, check, filters in [
    ("plain", lzma.CHECK_CRC64, [last]),
    ("sha", lzma.CHECK_SHA256, [last]),
    ("x86", lzma.CHECK_CRC64, [x86, last]),
    ("delta", lzma.CHECK_CRC64, [delta, last]),
]:
    with open(f"{name}.xz", "wb") as file:
        file.write(lzma.compress(b"hello", check=check, filters=filters))'
mkdir xz
cat >xz/go.mod <<'GO'
module finding
go 1.26
require github.com/ulikunitz/xz v0.5.17
GO
cat >xz/main.go <<'GO'
package main

import (
	"fmt"
	"io"
	"os"

	"github.com/ulikunitz/xz"
)

func main() {
	reader, err := xz.NewReader(os.Stdin)
	if err != nil {
		panic(err)
	}
	content, err := io.ReadAll(reader)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(string(content))
}
GO
cd xz
go mod tidy 2>/dev/null
go build -o ../read .
cd ..
js() {
    node -e '
        const { XzReadableStream } = require("xz-decompress");
        const file = new Blob([require("fs").readFileSync(process.argv[1])]);
        new Response(new XzReadableStream(file.stream())).text().then(console.log, (error) => console.log(error.message));
    ' "$1"
}
python() {
    v/bin/python -c '
import cramjam, sys
print(bytes(cramjam.xz.decompress(open(sys.argv[1], "rb").read())).decode())' "$1"
}
# row NAME OF_GO OF_XZ_DECOMPRESS
row() {
    seen "cramjam: $1" hello "$(python "$1.xz")"
    seen "ulikunitz/xz: $1" "$2" "$(./read <"$1.xz")"
    seen "xz-decompress: $1" "$3" "$(js "$1.xz")"
}
row plain hello hello
row sha hello 'get_next_output failed with error code 6'
row x86 'xz: unsupported filter count' 'get_next_output failed with error code 6'
row delta 'xz: unsupported filter count' 'get_next_output failed with error code 6'
