#!/usr/bin/env bash
# a="l1\nl2", in logfmt
#
# logfmt has no standard. github.com/go-logfmt/logfmt (Go), whose grammar others cite, reads and writes strings in quotes
# as JSON has them, so that a record is always one line.
# Guess: the library that has the name logfmt on npm reads what the one in Go writes.
# Seen: logfmt 1.4.0 (npm) gives l1nl2 for it, and u00e4 for \u00e4. It writes a new line as it is, so that one record
# becomes two lines, and reads an equal sign in a value without quotes away. logfmter 0.0.12 (Python) writes \n.
# Records with a trace of calls in them fall apart between the two.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install logfmt@1.4.0
pip_install logfmter==0.0.12
cat >go.mod <<'GO'
module finding
go 1.26
require github.com/go-logfmt/logfmt v0.6.1
GO
cat >main.go <<'GO'
package main

import (
	"fmt"

	"github.com/go-logfmt/logfmt"
)

func main() {
	line, err := logfmt.MarshalKeyvals("a", "l1\nl2", "b", "c=d")
	if err != nil {
		panic(err)
	}
	fmt.Println(string(line))
}
GO
go mod tidy 2>/dev/null
LINE=$(go run .)
js() {
    node -p "JSON.stringify($1)" "$2"
}
seen 'Go writes' 'a="l1\nl2" b="c=d"' "$LINE"
seen 'npm, of that' '{"a":"l1nl2","b":"c=d"}' "$(js 'require("logfmt").parse(process.argv[1])' "$LINE")"
seen 'npm: \u00e4' '{"a":"u00e4"}' "$(js 'require("logfmt").parse(process.argv[1])' 'a="\u00e4"')"
seen 'npm: b=c=d' '{"b":"cd"}' "$(js 'require("logfmt").parse(process.argv[1])' b=c=d)"
seen 'npm writes' '"a=l1\nl2"' "$(js 'require("logfmt").stringify({ a: "l1\nl2" })' '')"
seen 'Python writes' 'a="l1\nl2"' "$(v/bin/python -c '
from logfmter import Logfmter
print("a=" + Logfmter.format_string("l1\nl2"))')"
