#!/usr/bin/env bash
# :aGk:, the bytes of "hi" in a structured field, without the equal sign at the end
#
# RFC 9651, section 4.2.7: a reader ought not to fail where the padding of base64 is missing, unless its base64 cannot be told so.
# Guess: every library gives the two bytes, as base64 without padding is at hand in each language.
# Seen: github.com/dunglas/httpsfv 1.1.2 (Go) refuses the field. structured-headers 2.1.0 and structured-field-values 2.0.4 (npm)
# and http-sf 1.5.0 (Python) give the bytes.
# Of a field with a digest or a signature that was written without padding, a server in Go finds nothing.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install structured-headers@2.1.0 structured-field-values@2.0.4
pip_install http-sf==1.5.0
cat >go.mod <<'GO'
module finding
go 1.26
require github.com/dunglas/httpsfv v1.1.2
GO
cat >main.go <<'GO'
package main

import (
	"fmt"
	"os"

	"github.com/dunglas/httpsfv"
)

func main() {
	item, err := httpsfv.UnmarshalItem([]string{os.Args[1]})
	if err != nil {
		fmt.Println("refused")
		return
	}
	fmt.Printf("%s\n", item.Value)
}
GO
go mod tidy 2>/dev/null
go build -o read .
seen 'httpsfv: :aGk=:' hi "$(./read :aGk=:)"
seen 'httpsfv: :aGk:' refused "$(./read :aGk:)"
seen 'structured-headers: :aGk:' hi "$(node -p '
    Buffer.from(require("structured-headers").parseItem(":aGk:")[0]).toString()')"
seen 'structured-field-values: :aGk:' hi "$(node -p '
    Buffer.from(require("structured-field-values").decodeItem(":aGk:").value).toString()')"
seen 'http-sf: :aGk:' hi "$(v/bin/python -c '
import http_sf
print(http_sf.parse(b":aGk:", tltype="item")[0].decode())')"
