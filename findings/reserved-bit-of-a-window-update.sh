#!/usr/bin/env bash
# 00 00 04 08 00 00 00 00 00 80 00 00 01: WINDOW_UPDATE of HTTP/2
#
# RFC 9113, section 6.9: the first bit of the increment is reserved and must be ignored, so that this is an increment of 1.
# Section 6.8: so is the first bit of the last stream in GOAWAY. Section 4.1: and that of the stream of a frame.
# Guess: libraries for HTTP/2 mask all three, as they do in the header of each frame.
# Seen: h2 4.4.1 with hyperframe 6.1.0 (Python) ends the connection at this frame, and gives stream 2147483648 for 0 in
# GOAWAY. It ignores the bit in the header of a frame. golang.org/x/net 0.57.0 (Go) ignores all three.
# A peer that uses the bit, as an extension may one day, loses its connections to servers on these libraries.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install h2==4.4.1 hyperframe==6.1.0
python() {
    v/bin/python -c '
import sys
from h2.config import H2Configuration
from h2.connection import H2Connection
connection = H2Connection(H2Configuration(client_side=False))
connection.initiate_connection()
connection.receive_data(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes.fromhex("000000040000000000"))
try:
    (event,) = connection.receive_data(bytes.fromhex(sys.argv[1]))
    print(getattr(event, "delta", None) or event.last_stream_id)
except Exception as error:
    print(type(error).__name__)' "$1"
}
cat >go.mod <<'GO'
module finding
go 1.26
require golang.org/x/net v0.57.0
GO
cat >main.go <<'GO'
package main

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"io"
	"os"

	"golang.org/x/net/http2"
)

func main() {
	data, err := hex.DecodeString(os.Args[1])
	if err != nil {
		panic(err)
	}
	frame, err := http2.NewFramer(io.Discard, bytes.NewReader(data)).ReadFrame()
	switch frame := frame.(type) {
	case *http2.WindowUpdateFrame:
		fmt.Println(frame.Increment)
	case *http2.GoAwayFrame:
		fmt.Println(frame.LastStreamID)
	default:
		fmt.Println(err)
	}
}
GO
go mod tidy 2>/dev/null
go build -o read .
# row WHAT HEX OF_GO OF_H2
row() {
    seen "Go: $1" "$3" "$(./read "$2")"
    seen "h2: $1" "$4" "$(python "$2")"
}
row 'no bit set' 00000408000000000000000001 1 1
row 'bit of the stream' 00000408008000000000000001 1 1
row 'bit of the increment' 00000408000000000080000001 1 ProtocolError
row 'bit of the last stream' 0000080700000000008000000000000000 0 2147483648
