#!/usr/bin/env bash
# /a/**, in a pattern for paths
#
# gitignore(5): a trailing /** matches everything inside a folder. The manual of bash, "Pattern Matching": ** matches files, and
# any number of folders. No standard has it.
# Guess: the pattern is for /a/b and /a/b/c, and not for /a.
# Seen: picomatch 4.0.7, micromatch 4.0.8 (npm) and github.com/bmatcuk/doublestar 4.10.4 (Go) match /a, too. minimatch
# 11.0.9 (npm) and github.com/gobwas/glob 1.1.0 (Go) do not. gobwas/glob does not match /a/c by /a/**/c, either.
# A rule that is copied from one tool to another protects, or deletes, one path more.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install picomatch@4.0.7 micromatch@4.0.8 minimatch@11.0.9
cat >go.mod <<'GO'
module finding
go 1.26
require (
	github.com/bmatcuk/doublestar/v4 v4.10.4
	github.com/gobwas/glob v1.1.0
)
GO
cat >main.go <<'GO'
package main

import (
	"fmt"
	"os"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/gobwas/glob"
)

func main() {
	if os.Args[1] == "gobwas" {
		fmt.Println(glob.MustCompile(os.Args[2], '/').Match(os.Args[3]))
	} else {
		fmt.Println(doublestar.MatchUnvalidated(os.Args[2], os.Args[3]))
	}
}
GO
go mod tidy 2>/dev/null
go build -o match .
match() {
    case $1 in
    doublestar | gobwas) ./match "$@" ;;
    *) node -e '
const [library, pattern, text] = process.argv.slice(1);
const read = require(library);
console.log(library === "picomatch" ? read(pattern)(text) : library === "micromatch" ? read.isMatch(text, pattern)
    : read.minimatch(text, pattern));' "$@" ;;
    esac
}
for library in picomatch micromatch doublestar minimatch gobwas; do
    seen "$library: /a/b/c" true "$(match $library '/a/**' /a/b/c)"
done
for library in picomatch micromatch doublestar; do
    seen "$library: /a" true "$(match $library '/a/**' /a)"
    seen "$library: /a/**/c, /a/c" true "$(match $library '/a/**/c' /a/c)"
done
for library in minimatch gobwas; do
    seen "$library: /a" false "$(match $library '/a/**' /a)"
done
seen "minimatch: /a/**/c, /a/c" true "$(match minimatch '/a/**/c' /a/c)"
seen "gobwas: /a/**/c, /a/c" false "$(match gobwas '/a/**/c' /a/c)"
