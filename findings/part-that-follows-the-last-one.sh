#!/usr/bin/env bash
# #EXT-X-BYTERANGE:50, in a playlist of HLS
#
# RFC 8216, section 4.3.2.2: without an offset, the part begins at the byte behind the part of the segment before it.
# Section 4.3.2.5: the byte range of EXT-X-MAP stands in quotes.
# Guess: a library that has an offset in its data works it out, or keeps that there was none.
# Seen: github.com/grafov/m3u8 0.12.1 (Go) and m3u8-file-parser 0.2.4 (npm) give 0 for the offset. grafov/m3u8 writes
# `50@0` when it writes the playlist again, and the range of EXT-X-MAP without its quotes. m3u8-parser 7.2.0 and
# hls-parser 0.16.1 (npm) give 820, the end of 100@720.
# A player asks for the beginning of the file then, and a cache keeps parts of it that nobody meant.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install m3u8-file-parser@0.2.4 m3u8-parser@7.2.0 hls-parser@0.16.1
cat >a.m3u8 <<'M3U8'
#EXTM3U
#EXT-X-VERSION:7
#EXT-X-TARGETDURATION:10
#EXT-X-MAP:URI="init.mp4",BYTERANGE="720@0"
#EXTINF:9,
#EXT-X-BYTERANGE:100@720
a.mp4
#EXTINF:9,
#EXT-X-BYTERANGE:50
a.mp4
#EXT-X-ENDLIST
M3U8
read_with() {
    node -p '
        const text = require("fs").readFileSync("a.m3u8", "utf8");
        const library = require(process.argv[1]);
        const list = {
            "m3u8-parser": () => { const a = new library.Parser(); a.push(text); a.end(); return a.manifest; },
            "hls-parser": () => library.parse(text),
            "m3u8-file-parser": () => { const a = new library(); a.read(text); return a.getResult(); },
        }[process.argv[1]]();
        const { byterange, byteRange } = list.segments[1];
        JSON.stringify(byterange ?? byteRange)' "$1"
}
seen m3u8-parser '{"length":50,"offset":820}' "$(read_with m3u8-parser)"
seen hls-parser '{"length":50,"offset":820}' "$(read_with hls-parser)"
seen m3u8-file-parser '{"length":50,"offset":0}' "$(read_with m3u8-file-parser)"

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
	fmt.Print(list)
}
GO
go mod tidy 2>/dev/null
go build -o rewrite .
./rewrite >b.m3u8
seen 'grafov/m3u8: parts' '100@720 50@0' "$(sed -n 's/#EXT-X-BYTERANGE://p' b.m3u8 | xargs)"
seen 'grafov/m3u8: part of the map' 'BYTERANGE=720@0' "$(grep -o 'BYTERANGE=.*' b.m3u8)"
