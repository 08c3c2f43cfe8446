#!/usr/bin/env bash
# [!a], in a pattern for names of files
#
# POSIX, "Shell Command Language", section 2.13.1: an exclamation mark at the beginning of a class negates it; a circumflex
# there is unspecified, and shells take it for the same.
# Guess: libraries for such patterns know the exclamation mark, and most of them the circumflex.
# Seen: picomatch 4.0.7 and micromatch 4.0.8 (npm) do not know the exclamation mark: [!a] matches `!` and a. They know the
# circumflex. github.com/gobwas/glob 1.1.0 (Go) knows the exclamation mark alone. minimatch 11.0.9 (npm) and
# github.com/bmatcuk/doublestar 4.10.4 (Go) know both.
# A rule for "all but these" is one for "these" in another tool.
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
for library in picomatch micromatch; do
    seen "$library: [^a], b" true "$(match $library '[^a]' b)"
    seen "$library: [!a], b" false "$(match $library '[!a]' b)"
    seen "$library: [!a], a" true "$(match $library '[!a]' a)"
done
for library in minimatch doublestar; do
    seen "$library: [^a], b" true "$(match $library '[^a]' b)"
    seen "$library: [!a], b" true "$(match $library '[!a]' b)"
done
seen 'gobwas/glob: [!a], b' true "$(match gobwas '[!a]' b)"
seen 'gobwas/glob: [^a], b' false "$(match gobwas '[^a]' b)"
