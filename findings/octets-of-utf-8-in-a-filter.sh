#!/usr/bin/env bash
# (cn=\c3\a4), a filter of LDAP
#
# RFC 4515, section 3: a backslash and two digits stand for an octet of the UTF-8 of the value; (cn=\c3\a4) and (cn=ä) are
# one filter. Section 4 has the example (sn=Lu\c4\8di\c4\87).
# Guess: parsers of filters put the octets together.
# Seen: ldap-filter 1.0.1 (Python) and ldap-filter 0.3.3 (npm, no relation) make a character of each: Ã¤. The filter does
# not match the entry that (cn=ä) matches. github.com/go-ldap/ldap 3.4.15 (Go) writes both as (cn=\c3\a4).
# Names with umlauts are found in tests without escapes, and not with the escapes that other tools write.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install ldap-filter==1.0.1
npm_install ldap-filter@0.3.3
python() {
    v/bin/python -c '
import sys
from ldap_filter import Filter
print(Filter.parse(sys.argv[1]).match({"cn": "ä"}))' "$1"
}
js() {
    node -p 'require("ldap-filter").parse(process.argv[1]).matches({ cn: "ä" })' "$1"
}
seen 'Python: (cn=ä) matches ä' True "$(python '(cn=ä)')"
seen 'Python: (cn=\c3\a4) matches ä' False "$(python '(cn=\c3\a4)')"
seen 'npm: (cn=ä) matches ä' true "$(js '(cn=ä)')"
seen 'npm: (cn=\c3\a4) matches ä' false "$(js '(cn=\c3\a4)')"
mkdir filter
cat >filter/go.mod <<'GO'
module finding
go 1.26
require github.com/go-ldap/ldap/v3 v3.4.15
GO
cat >filter/main.go <<'GO'
package main

import (
	"fmt"
	"os"

	"github.com/go-ldap/ldap/v3"
)

func main() {
	filter, err := ldap.CompileFilter(os.Args[1])
	if err != nil {
		panic(err)
	}
	fmt.Println(ldap.DecompileFilter(filter))
}
GO
cd filter
go mod tidy 2>/dev/null
go build -o ../read .
cd ..
seen 'Go: (cn=ä)' '(cn=\c3\a4) <nil>' "$(./read '(cn=ä)')"
seen 'Go: (cn=\c3\a4)' '(cn=\c3\a4) <nil>' "$(./read '(cn=\c3\a4)')"
