#!/usr/bin/env bash
# ~>1.2, a range of versions
#
# RubyGems, whose sign it is: ~>1.2 holds all of 1.x from 1.2 on. npm, semver 7: ~> is the same as ~, so that ~>1.2 holds 1.2.x.
# Guess: libraries in Go that know the sign agree with RubyGems.
# Seen: github.com/hashicorp/go-version 1.9.0, of Terraform, does. github.com/Masterminds/semver 3.5.0, of Helm, holds 1.2.x
# alone. For >1.2 the first one holds 1.2.3, and the second one does not; for <=1.2 it is the reverse.
# The same line in two files of one project chooses other versions, without an error.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

cat >go.mod <<'GO'
module finding
go 1.26
require (
	github.com/Masterminds/semver/v3 v3.5.0
	github.com/hashicorp/go-version v1.9.0
)
GO
cat >main.go <<'GO'
package main

import (
	"fmt"
	"os"

	"github.com/Masterminds/semver/v3"
	"github.com/hashicorp/go-version"
)

func main() {
	first, err := semver.NewConstraint(os.Args[1])
	if err != nil {
		panic(err)
	}
	second, err := version.NewConstraint(os.Args[1])
	if err != nil {
		panic(err)
	}
	other := version.Must(version.NewVersion(os.Args[2]))
	fmt.Println(first.Check(semver.MustParse(os.Args[2])), second.Check(other))
}
GO
go mod tidy 2>/dev/null
go build -o check .
echo 'Masterminds and hashicorp:'
seen '>=1.2: 1.2.3' 'true true' "$(./check '>=1.2' 1.2.3)"
seen '~>1.2: 1.2.3' 'true true' "$(./check '~>1.2' 1.2.3)"
seen '~>1.2: 1.9.0' 'false true' "$(./check '~>1.2' 1.9.0)"
seen '>1.2: 1.2.3' 'false true' "$(./check '>1.2' 1.2.3)"
seen '<=1.2: 1.2.3' 'true false' "$(./check '<=1.2' 1.2.3)"
seen '=1.2: 1.2.3' 'true false' "$(./check '=1.2' 1.2.3)"
