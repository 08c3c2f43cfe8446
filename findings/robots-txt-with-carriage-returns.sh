#!/usr/bin/env bash
# User-agent: *\rDisallow: /a\r
#
# RFC 9309, section 2.2: a line ends with CR, LF or both. Section 2.2.4 and its grammar: a comment may begin right behind a
# path, as a path has no "#" in it.
# Guess: parsers know the three ends of a line, and the comment.
# Seen: robots-txt-parse 2.0.1 (npm) finds no rule in a file whose lines end with CR, so that all is allowed. github.com/temoto/
# robotstxt 1.1.2 (Go) takes `#b` in `Disallow: /a#b` for a part of the path, and `Disallow : /a` for no rule. Protego 0.7.0
# (Python) and robots-parser 3.0.1 (npm) read all three.
# What a site forbids is fetched, and nobody sees an error.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install protego==0.7.0
npm_install robots-parser@3.0.1 robots-txt-guard@1.0.2 robots-txt-parse@2.0.1
cat >go.mod <<'GO'
module finding
go 1.26
require github.com/temoto/robotstxt v1.1.2
GO
cat >main.go <<'GO'
package main

import (
	"fmt"
	"os"

	"github.com/temoto/robotstxt"
)

func main() {
	robots, err := robotstxt.FromString(os.Args[1])
	if err != nil {
		panic(err)
	}
	fmt.Println(robots.TestAgent("/ab", "x"))
}
GO
go mod tidy 2>/dev/null
go build -o allowed .
# ask LIBRARY TEXT: whether /ab is allowed
ask() {
    case $1 in
    temoto) ./allowed "$2" ;;
    protego) v/bin/python -c '
import protego, sys
print(str(protego.Protego.parse(sys.argv[1]).can_fetch("http://a.example/ab", "x")).lower())' "$2" ;;
    robots-parser) node -p '
require("robots-parser")("http://a.example/robots.txt", process.argv[1]).isAllowed("http://a.example/ab", "x")' "$2" ;;
    robots-txt-parse) node -e '
require("robots-txt-parse")(require("node:stream").Readable.from([process.argv[1]]))
    .then(read => console.log(require("robots-txt-guard")(read).isAllowed("x", "/ab")))' "$2" ;;
    esac
}
returns=$'User-agent: *\rDisallow: /a\r' comment=$'User-agent: *\nDisallow: /a#b\n' blank=$'User-agent: *\nDisallow : /a\n'
for library in protego robots-parser; do
    seen "$library: CR" false "$(ask $library "$returns")"
    seen "$library: comment" false "$(ask $library "$comment")"
    seen "$library: blank" false "$(ask $library "$blank")"
done
seen 'robots-txt-parse: CR' true "$(ask robots-txt-parse "$returns")"
seen 'robots-txt-parse: comment' false "$(ask robots-txt-parse "$comment")"
seen 'robots-txt-parse: blank' false "$(ask robots-txt-parse "$blank")"
seen 'temoto/robotstxt: CR' false "$(ask temoto "$returns")"
seen 'temoto/robotstxt: comment' true "$(ask temoto "$comment")"
seen 'temoto/robotstxt: blank' true "$(ask temoto "$blank")"
