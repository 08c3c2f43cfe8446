#!/usr/bin/env bash
# the image localhost/a, and a:1@sha256:...
#
# Distribution, "reference": the first part of a name is a registry, if it has a dot or a colon, or is localhost; else the registry
# is docker.io, where a name without a slash is below library/. A reference may have both a tag and a digest.
# Guess: libraries that split a reference find the registry that docker would ask.
# Seen: oras 0.2.43 (Python) looks for localhost/a at docker.io, although it knows localhost:5000/a, and for alpine without library/.
# docker 7.2.0 (Python) knows localhost, and leaves the tag in the name of an image that has a digest, too: its parse_repository_tag
# gives a:1. github.com/distribution/reference 0.6.0 and go-containerregistry 0.22.1 (Go) find localhost and library/.
# An image that was built for a test on this machine is asked for in a public registry, and is not found.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install oras==0.2.43 docker==7.2.0
cat >go.mod <<'GO'
module finding
go 1.26
require (
	github.com/distribution/reference v0.6.0
	github.com/google/go-containerregistry v0.22.1
)
GO
cat >main.go <<'GO'
package main

import (
	"fmt"
	"os"

	"github.com/distribution/reference"
	"github.com/google/go-containerregistry/pkg/name"
)

func main() {
	if os.Args[1] == "reference" {
		named, err := reference.ParseNormalizedNamed(os.Args[2])
		fmt.Println(reference.Domain(named), reference.Path(named), err)
	} else {
		read, err := name.ParseReference(os.Args[2])
		fmt.Println(read.Context().RegistryStr(), read.Context().RepositoryStr(), err)
	}
}
GO
go get . 2>/dev/null
go build -o split .
oras() {
    v/bin/python -c '
import sys
from oras.container import Container
read = Container(sys.argv[1])
print(read.registry, "/".join(part for part in (read.namespace, read.repository) if part))' "$1"
}
docker_py() {
    v/bin/python -c '
import sys
from docker.auth import resolve_repository_name
from docker.utils import parse_repository_tag
name, tag = parse_repository_tag(sys.argv[1])
print(*resolve_repository_name(name), (tag or "none")[:6])' "$1"
}
digest=sha256:$(printf 'a%.0s' {1..64})
seen 'reference: localhost/a' 'localhost a <nil>' "$(./split reference localhost/a)"
seen 'go-containerregistry: localhost/a' 'localhost a <nil>' "$(./split name localhost/a)"
seen 'docker of Python: localhost/a' 'localhost a none' "$(docker_py localhost/a)"
seen 'oras: localhost/a' 'docker.io localhost/a' "$(oras localhost/a)"
seen 'oras: localhost:5000/a' 'localhost:5000 a' "$(oras localhost:5000/a)"
seen 'reference: alpine' 'docker.io library/alpine <nil>' "$(./split reference alpine)"
seen 'oras: alpine' 'docker.io alpine' "$(oras alpine)"
seen 'reference: ghcr.io/a/b:1@sha256:...' 'ghcr.io a/b <nil>' "$(./split reference "ghcr.io/a/b:1@$digest")"
seen 'docker of Python: ghcr.io/a/b:1@sha256:...' 'ghcr.io a/b:1 sha256' "$(docker_py "ghcr.io/a/b:1@$digest")"
seen 'docker of Python: ghcr.io/a/b:1' 'ghcr.io a/b 1' "$(docker_py ghcr.io/a/b:1)"
