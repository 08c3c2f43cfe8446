#!/usr/bin/env bash
# #EXT-X-STREAM-INF:BANDWIDTH=2560000, a blank line, and the address
#
# RFC 8216, section 4.1: blank lines and comments are ignored in a playlist.
# Guess: a library finds the address of a variant behind a blank line, in its strict mode or out of it.
# Seen: github.com/grafov/m3u8 0.12.1 (Go) takes the blank line for the address of the variant, and drops the address
# itself, without an error. A comment does it no harm, nor a blank line before a segment. m3u8 6.0.0 (Python) and
# m3u8-parser 7.2.0 (npm) find the address.
# A proxy that writes playlists with this library loses a quality of the film for one blank line.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install m3u8-parser@7.2.0
pip_install m3u8==6.0.0
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
	"strings"

	"github.com/grafov/m3u8"
)

func main() {
	list, _, err := m3u8.DecodeFrom(strings.NewReader(os.Args[1]), true)
	if err != nil {
		panic(err)
	}
	switch list := list.(type) {
	case *m3u8.MasterPlaylist:
		fmt.Printf("%q\n", list.Variants[0].URI)
	case *m3u8.MediaPlaylist:
		fmt.Printf("%q\n", list.Segments[0].URI)
	}
}
GO
go mod tidy 2>/dev/null
go build -o read .
VARIANT=$'#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=2560000\n'
SEGMENT=$'#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXTINF:9,\n'
seen 'grafov/m3u8: variant' '"a.m3u8"' "$(./read "${VARIANT}a.m3u8")"
seen 'grafov/m3u8: variant, comment' '"a.m3u8"' "$(./read "$VARIANT"$'# comment\na.m3u8')"
seen 'grafov/m3u8: variant, blank line' '""' "$(./read "$VARIANT"$'\na.m3u8')"
seen 'grafov/m3u8: segment, blank line' '""' "$(./read "$SEGMENT"$'\na.mp4')"
seen 'm3u8-parser: variant, blank line' a.m3u8 "$(node -p '
    const { Parser } = require("m3u8-parser");
    const parser = new Parser();
    parser.push(process.argv[1]);
    parser.end();
    parser.manifest.playlists[0].uri' "$VARIANT"$'\na.m3u8')"
seen 'm3u8: variant, blank line' a.m3u8 \
    "$(v/bin/python -c 'import m3u8, sys; print(m3u8.loads(sys.argv[1]).playlists[0].uri)' "$VARIANT"$'\na.m3u8')"
