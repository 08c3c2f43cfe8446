#!/usr/bin/env bash
# Link: </a,b>; rel="next prev"; title="c, d"
#
# RFC 8288, section 3: the target stands between < and >, where RFC 3986 allows commas and semicolons; a value in quotes
# may have both, and a relation may be several, with blanks between. The names of parameters are in any case, and blanks
# may stand around the equal sign.
# Guess: a parser of this field splits it outside of brackets and quotes.
# Seen: github.com/tomnomnom/linkheader (Go) finds no link to /a,b nor to /a;b, and cuts the title at its comma.
# github.com/peterhellberg/link 1.2.0 (Go) finds /ab for /a,b, and drops the comma of the title, too; it takes two
# relations for one of the name "next prev", and misses the link whose REL is in capitals. linkheader misses the
# relation if there are blanks around the equal sign.
# A server that makes links for such clients should write the comma as %2C, and a link for each relation.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

cat >go.mod <<'GO'
module finding
go 1.26
require (
	github.com/peterhellberg/link v1.2.0
	github.com/tomnomnom/linkheader v0.0.0-20250811210735-e5fe3b51442e
)
GO
cat >main.go <<'GO'
package main

import (
	"fmt"
	"os"

	"github.com/peterhellberg/link"
	"github.com/tomnomnom/linkheader"
)

func main() {
	found := "none"
	if os.Args[1] == "linkheader" {
		for _, link := range linkheader.Parse(os.Args[2]) {
			found = fmt.Sprintf("%s rel=%s title=%s", link.URL, link.Rel, link.Params["title"])
		}
	} else {
		for key, link := range link.Parse(os.Args[2]) {
			found = fmt.Sprintf("%s rel=%s title=%s", link.URI, key, link.Extra["title"])
		}
	}
	fmt.Println(found)
}
GO
go mod tidy 2>/dev/null
go build -o parse .
# both TEXT OF_LINKHEADER OF_LINK
both() {
    seen "linkheader: $1" "$2" "$(./parse linkheader "$1")"
    seen "link: $1" "$3" "$(./parse link "$1")"
}
both '</a>; rel="next"; title="c"' '/a rel=next title=c' '/a rel=next title=c'
both '</a,b>; rel="next"' none '/ab rel=next title='
both '</a;b>; rel="next"' none '/a;b rel=next title='
both '</a>; rel="next"; title="c, d"' '/a rel=next title=c' '/a rel=next title=c d'
both '</a>; rel="next prev"' '/a rel=next prev title=' '/a rel=next prev title='
both '</a>; REL="next"' '/a rel=next title=' none
both '</a>; rel = "next"' '/a rel= title=' '/a rel=next title='
