#!/usr/bin/env bash
# (&), a filter of LDAP
#
# RFC 4526, section 2: (&) is the filter that is always true, and (|) the one that is always false. RFC 4515, section 3:
# the value may be empty, as in (cn=), and the attribute an OID, or have options, as in (cn;lang-en=a).
# Guess: libraries that read filters of RFC 4515 read these.
# Seen: ldap3 2.9.1 (Python), "strictly RFC 4510 conforming", and ldap-filter 1.0.1 (Python) and 0.3.3 (npm) refuse (&) and
# (|). ldap-filter of Python refuses (cn=), too, and drops ;lang-en; that of npm refuses options and OIDs.
# github.com/go-ldap/ldap 3.4.15 (Go) reads all of them.
# A client that asks for every entry should write (objectClass=*).
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install ldap3==2.9.1 ldap-filter==1.0.1
npm_install ldap-filter@0.3.3
python() {
    v/bin/python -c '
import sys
library, text = sys.argv[1:]
try:
    if library == "ldap3":
        from ldap3.operation.search import parse_filter
        parse_filter(text, None, False, False, None, False)
        print(text)
    else:
        from ldap_filter import Filter
        print(Filter.parse(text).to_string())
except Exception:
    print("refused")' "$@"
}
js() {
    node -p 'try { String(require("ldap-filter").parse(process.argv[1])); } catch { "refused"; }' "$1"
}
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
	text, err := ldap.DecompileFilter(filter)
	if err != nil {
		panic(err)
	}
	fmt.Println(text)
}
GO
cd filter
go mod tidy 2>/dev/null
go build -o ../read .
cd ..
# row FILTER OF_LDAP3 OF_LDAP_FILTER_OF_PYTHON OF_LDAP_FILTER_OF_NPM
row() {
    seen "go-ldap: $1" "$1" "$(./read "$1")"
    seen "ldap3: $1" "$2" "$(python ldap3 "$1")"
    seen "ldap-filter of Python: $1" "$3" "$(python ldap-filter "$1")"
    seen "ldap-filter of npm: $1" "$4" "$(js "$1")"
}
row '(cn=a)' '(cn=a)' '(cn=a)' '(cn=a)'
row '(&)' refused refused refused
row '(|)' refused refused refused
row '(cn=)' '(cn=)' refused '(cn=)'
row '(cn;lang-en=a)' '(cn;lang-en=a)' '(cn=a)' refused
row '(2.5.4.3=a)' '(2.5.4.3=a)' '(2.5.4.3=a)' refused
