#!/usr/bin/env bash
# .dockerignore: a+, and (a)
#
# Docker's reference of .dockerignore: patterns are those of Go's filepath.Match, and `**`. There * ? [ and a backslash have a
# meaning, and no other letters; capitals differ from small letters.
# Guess: a library for this file finds a+, and not README for the pattern readme.
# Seen: @balena/dockerignore 1.0.2 and @zeit/dockerignore 0.0.5 (npm) take + ( ) and | for those of regular expressions: `a+`
# is for aa, and not for a+, and `(a)` for a. By default they take README for readme. github.com/moby/patternmatcher 0.6.0
# (Go), which Docker uses, does as the reference says.
# A tool on them sends files to a build that Docker would leave out, or leaves files out that the build needs.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install @balena/dockerignore@1.0.2 @zeit/dockerignore@0.0.5
js() {
    node -p '
        const [library, pattern, file] = process.argv.slice(1);
        require(library)().add(pattern).ignores(file)' "$@"
}
cat >go.mod <<'GO'
module finding
go 1.26
require github.com/moby/patternmatcher v0.6.0
GO
cat >main.go <<'GO'
package main

import (
	"fmt"
	"os"

	"github.com/moby/patternmatcher"
)

func main() {
	found, err := patternmatcher.MatchesOrParentMatches(os.Args[2], os.Args[1:2])
	fmt.Println(found, err)
}
GO
go mod tidy 2>/dev/null
for library in @balena/dockerignore @zeit/dockerignore; do
    seen "$library: a+, the file a+" false "$(js $library a+ a+)"
    seen "$library: a+, the file aa" true "$(js $library a+ aa)"
    seen "$library: (a), the file (a)" false "$(js $library '(a)' '(a)')"
    seen "$library: (a), the file a" true "$(js $library '(a)' a)"
    seen "$library: readme, the file README" true "$(js $library readme README)"
done
seen 'patternmatcher: a+, the file a+' 'true <nil>' "$(go run . a+ a+)"
seen 'patternmatcher: a+, the file aa' 'false <nil>' "$(go run . a+ aa)"
seen 'patternmatcher: (a), the file (a)' 'true <nil>' "$(go run . '(a)' '(a)')"
seen 'patternmatcher: readme, the file README' 'false <nil>' "$(go run . readme README)"
