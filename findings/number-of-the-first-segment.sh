#!/usr/bin/env bash
# #EXT-X-MEDIA-SEQUENCE:1700000000000000001
#
# RFC 8216, section 4.2: a decimal integer goes up to 2^64 - 1. Section 4.3.3.2: the number of a segment is one more than
# that of the segment before; section 5.2: it is the initialization vector of its decryption, if there is no other.
# Guess: a player's library counts the segments on from there, in BigInt or in a text.
# Seen: hls-parser 0.16.1 (npm) gives 1700000000000000000 to all three segments, as the number has more than the 53 bits
# of JavaScript, and m3u8-parser 7.2.0 and m3u8-file-parser 0.2.4 (npm) give it to the playlist. m3u8 6.0.0 (Python) and
# github.com/grafov/m3u8 0.12.1 (Go) keep the number.
# A server that counts segments by the nanosecond gives each of them the same number.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install hls-parser@0.16.1 m3u8-parser@7.2.0 m3u8-file-parser@0.2.4
pip_install m3u8==6.0.0
cat >a.m3u8 <<'M3U8'
#EXTM3U
#EXT-X-TARGETDURATION:9
#EXT-X-MEDIA-SEQUENCE:1700000000000000001
#EXTINF:9,
a.ts
#EXTINF:9,
b.ts
#EXTINF:9,
c.ts
M3U8
read_with() {
    node -p '
        const text = require("fs").readFileSync("a.m3u8", "utf8");
        const library = require(process.argv[1]);
        ({
            "m3u8-parser": () => { const a = new library.Parser(); a.push(text); a.end(); return a.manifest.mediaSequence; },
            "hls-parser": () => library.parse(text).segments.map((a) => a.mediaSequenceNumber).join(" "),
            "m3u8-file-parser": () => { const a = new library(); a.read(text); return a.getResult().mediaSequence; },
        })[process.argv[1]]()' "$1"
}
seen hls-parser '1700000000000000000 1700000000000000000 1700000000000000000' "$(read_with hls-parser)"
seen m3u8-parser 1700000000000000000 "$(read_with m3u8-parser)"
seen m3u8-file-parser 1700000000000000000 "$(read_with m3u8-file-parser)"
seen 'm3u8 of Python' 1700000000000000001 "$(v/bin/python -c 'import m3u8; print(m3u8.load("a.m3u8").media_sequence)')"

cat >go.mod <<'GO'
module finding
go 1.26
require github.com/grafov/m3u8 v0.12.1
GO
cat >main.go <<'GO'
package main

import (
	"fmt"
	"os"

	"github.com/grafov/m3u8"
)

func main() {
	file, err := os.Open("a.m3u8")
	if err != nil {
		panic(err)
	}
	list, _, err := m3u8.DecodeFrom(file, true)
	if err != nil {
		panic(err)
	}
	for _, segment := range list.(*m3u8.MediaPlaylist).GetAllSegments() {
		fmt.Print(segment.SeqId, " ")
	}
}
GO
go mod tidy 2>/dev/null
go build -o read .
seen grafov/m3u8 '1700000000000000001 1700000000000000002 1700000000000000003 ' "$(./read)"
