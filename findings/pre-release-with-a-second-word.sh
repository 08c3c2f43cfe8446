#!/usr/bin/env bash
# 1.0.0-alpha and 1.0.0-alpha.beta
#
# Semantic Versioning 2.0.0, section 11: of two pre-releases that are equal as far as the shorter one goes, the longer one is
# newer; these two are of its example, alpha < alpha.1 < alpha.beta < beta.
# Guess: libraries for these versions put the example in its order.
# Seen: github.com/hashicorp/go-version 1.9.0 (Go) finds alpha.beta older than alpha. It finds alpha.1 newer than alpha, and
# alpha.beta newer than alpha.1, so that the three have no order. github.com/Masterminds/semver 3.5.0 (Go) finds it newer.
# A list that is sorted by this library depends on the order that it had before.
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
	if os.Args[1] == "Masterminds" {
		fmt.Println(semver.MustParse(os.Args[2]).Compare(semver.MustParse(os.Args[3])))
	} else {
		first := version.Must(version.NewVersion(os.Args[2]))
		fmt.Println(first.Compare(version.Must(version.NewVersion(os.Args[3]))))
	}
}
GO
go mod tidy 2>/dev/null
go build -o compare .
seen 'Masterminds: alpha and alpha.beta' -1 "$(./compare Masterminds 1.0.0-alpha 1.0.0-alpha.beta)"
seen 'hashicorp: alpha and alpha.1' -1 "$(./compare hashicorp 1.0.0-alpha 1.0.0-alpha.1)"
seen 'hashicorp: alpha.1 and alpha.beta' -1 "$(./compare hashicorp 1.0.0-alpha.1 1.0.0-alpha.beta)"
seen 'hashicorp: alpha and alpha.beta' 1 "$(./compare hashicorp 1.0.0-alpha 1.0.0-alpha.beta)"
