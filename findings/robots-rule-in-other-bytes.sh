#!/usr/bin/env bash
# Disallow: /ä
#
# RFC 9309, section 2.2.2: bytes beyond ASCII are compared as their percent-encoded forms, in rules and in paths; its
# example says that a rule of /foo/bar/ツ matches the path with %E3%83%84. Of an allow and a disallow rule that are
# equivalent, the allow rule should be used.
# Guess: a parser of robots.txt compares so.
# Seen: github.com/temoto/robotstxt 1.1.2 (Go) compares the texts: the rule of /ä is not for /%C3%A4, as every client of
# HTTP writes that path. It obeys the disallow rule of two equivalent ones. protego 0.7.0 (Python) does both as the RFC
# says.
# A site that wants the rule obeyed writes it in the percent-encoded form.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

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
	rules, err := robotstxt.FromString("User-agent: *\n" + os.Args[1] + "\n")
	if err != nil {
		panic(err)
	}
	fmt.Println(map[bool]string{true: "allowed", false: "disallowed"}[rules.TestAgent(os.Args[2], "a")])
}
GO
go mod tidy 2>/dev/null
go build -o ask .
pip_install protego==0.7.0
cat >ask.py <<'PY'
import sys
from protego import Protego
rules = Protego.parse(f"User-agent: *\n{sys.argv[1]}\n")
print("allowed" if rules.can_fetch(sys.argv[2], "a") else "disallowed")
PY
# rows LIBRARY OF_OTHER_BYTES OF_EQUIVALENT COMMAND...
rows() {
    seen "$1: Disallow: /%C3%A4" disallowed "$("${@:4}" 'Disallow: /%C3%A4' /%C3%A4)"
    seen "$1: Disallow: /ä" "$2" "$("${@:4}" 'Disallow: /ä' /%C3%A4)"
    seen "$1: Disallow: /x, Allow: /x" "$3" "$("${@:4}" $'Disallow: /x\nAllow: /x' /x)"
}
rows robotstxt allowed disallowed ./ask
rows protego disallowed allowed v/bin/python ask.py
