#!/usr/bin/env bash
# 00 01 d1: fields in QPACK with no entry of the dynamic table, and the base 1
#
# RFC 9204, section 4.5.1.2: a list of fields that names no entry of the dynamic table may have any base; 0 is merely short.
# d1 is entry 17 of the static table, :method GET.
# Guess: a decoder ignores a base that nothing refers to.
# Seen: github.com/quic-go/qpack 0.6.0 (Go) refuses it, "expected Base to be zero". pylsqpack 1.0.0 (Python) and qh3 2.1.0
# (Python) give the field.
# A server in Go ends its connection with a peer whose encoder keeps a base of its own.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install pylsqpack==1.0.0 qh3==2.1.0
python() {
    v/bin/python -c '
import sys
if sys.argv[1] == "qh3":
    from qh3._hazmat import QpackDecoder as Decoder
else:
    from pylsqpack import Decoder
fields = Decoder(4096, 16).feed_header(0, bytes.fromhex(sys.argv[2]))[1]
print(*(b" ".join(field).decode() for field in fields))' "$@"
}
seen 'pylsqpack: base 0' ':method GET' "$(python pylsqpack 0000d1)"
seen 'pylsqpack: base 1' ':method GET' "$(python pylsqpack 0001d1)"
seen 'qh3: base 1' ':method GET' "$(python qh3 0001d1)"

cat >go.mod <<'GO'
module finding
go 1.26
require github.com/quic-go/qpack v0.6.0
GO
cat >main.go <<'GO'
package main

import (
	"encoding/hex"
	"fmt"
	"os"

	"github.com/quic-go/qpack"
)

func main() {
	section, _ := hex.DecodeString(os.Args[1])
	field, err := qpack.NewDecoder().Decode(section)()
	fmt.Println(field.Name, field.Value, err)
}
GO
go mod tidy 2>/dev/null
seen 'qpack (Go): base 0' ':method GET <nil>' "$(go run . 0000d1)"
seen 'qpack (Go): base 1' '  expected Base to be zero' "$(go run . 0001d1)"
