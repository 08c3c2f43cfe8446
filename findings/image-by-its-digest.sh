#!/usr/bin/env bash
# a.example:443/b@sha256:..., and quay.example/a/b/c/d:1
#
# The grammar of the library `reference` of distribution, from which the names of images come: a registry, a path of one part
# or more, and a tag, or a digest behind @, or both.
# Guess: a library for the names gives the parts, and writes a name of the parts that names the same image.
# Seen: docker-parse-image 3.0.1 (npm) takes the digest for a tag, and writes a.example:443/library/b:sha256:..., which is no
# name, and has another path. Of a tag and a digest it makes one tag. It gives nothing for four parts.
# @swimlane/docker-reference 2.0.1 (npm) gives each of them, and github.com/distribution/reference 0.6.0 (Go) as well.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
HASH=$(printf 'ab%.0s' {1..32})

npm_install docker-parse-image@3.0.1 @swimlane/docker-reference@2.0.1
js() {
    node -p '
        const [library, name] = process.argv.slice(1);
        const found = require(library);
        library.startsWith("@") ? found.parseAll(name).toString() : (found(name) ?? {}).fullname ?? "nothing"' "$@" |
        sed 's/\(ab\)\{32\}/HASH/'
}
parse() {
    js docker-parse-image "$1"
}
reference() {
    js @swimlane/docker-reference "$1"
}
seen 'docker-parse-image: a tag' a.example:443/b/c:1 "$(parse a.example:443/b/c:1)"
seen 'docker-parse-image: one part' a.example:443/library/b:1 "$(parse a.example:443/b:1)"
seen 'docker-parse-image: a digest' a.example:443/b/c:sha256:HASH "$(parse a.example:443/b/c@sha256:"$HASH")"
seen 'docker-parse-image: both' a.example/b/c:1@sha256:HASH "$(parse a.example/b/c:1@sha256:"$HASH")"
seen 'docker-parse-image: four parts' nothing "$(parse a.example/a/b/c/d:1)"
seen '@swimlane: one part' a.example:443/b:1 "$(reference a.example:443/b:1)"
seen '@swimlane: a digest' a.example:443/b/c@sha256:HASH "$(reference a.example:443/b/c@sha256:"$HASH")"
seen '@swimlane: four parts' a.example/a/b/c/d:1 "$(reference a.example/a/b/c/d:1)"

cat >go.mod <<'GO'
module finding
go 1.26
require github.com/distribution/reference v0.6.0
GO
cat >main.go <<'GO'
package main

import (
	"fmt"
	"os"

	"github.com/distribution/reference"
)

func main() {
	name, err := reference.ParseNormalizedNamed(os.Args[1])
	fmt.Println(name, err)
}
GO
go mod tidy 2>/dev/null
seen 'reference (Go): one part' 'a.example:443/b:1 <nil>' "$(go run . a.example:443/b:1)"
seen 'reference (Go): an address of IPv6' '[2001:db8::1]:443/b:1 <nil>' "$(go run . '[2001:db8::1]:443/b:1')"
