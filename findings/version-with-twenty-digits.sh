#!/usr/bin/env bash
# 1.0+20240229101112000001 and 1.0+20240229101112000002, as versions of Debian
#
# deb-version(7): digits are compared by their value as a number, of any length; a date with a time and a count has twenty.
# Guess: a library in a language with numbers of 64 bits minds their end, or gives an error.
# Seen: github.com/knqyf263/go-deb-version of November 2024 (Go), by which scanners for faults compare, finds the two equal,
# and 99999999999999999999 and 100000000000000000000, too, without an error. pault.ag/go/debian 0.21.4 (Go) and dpkg find the
# first older.
# A repaired package is not told from its predecessor.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

cat >go.mod <<'GO'
module finding
go 1.26
require (
	github.com/knqyf263/go-deb-version v0.0.0-20241115132648-6f4aee6ccd23
	pault.ag/go/debian v0.21.4
)
GO
cat >main.go <<'GO'
package main

import (
	"fmt"
	"os"

	version "github.com/knqyf263/go-deb-version"
	other "pault.ag/go/debian/version"
)

func main() {
	if os.Args[1] == "knqyf263" {
		first, _ := version.NewVersion(os.Args[2])
		second, _ := version.NewVersion(os.Args[3])
		fmt.Println(first.LessThan(second), first.Equal(second))
	} else {
		first, _ := other.Parse(os.Args[2])
		second, _ := other.Parse(os.Args[3])
		fmt.Println(other.Compare(first, second) < 0, other.Compare(first, second) == 0)
	}
}
GO
go mod tidy 2>/dev/null
go build -o compare .
# older and equal
dpkg() {
    local older=false equal=false
    if command dpkg --compare-versions "$1" lt "$2"; then older=true; fi
    if command dpkg --compare-versions "$1" eq "$2"; then equal=true; fi
    echo "$older $equal"
}
short=(1.0+2024022910111201 1.0+2024022910111202) long=(1.0+20240229101112000001 1.0+20240229101112000002)
nines=(99999999999999999999 100000000000000000000)
seen 'dpkg: 16 digits' 'true false' "$(dpkg "${short[@]}")"
seen 'dpkg: 20 digits' 'true false' "$(dpkg "${long[@]}")"
seen 'dpkg: nines' 'true false' "$(dpkg "${nines[@]}")"
seen 'pault.ag/go/debian: 20 digits' 'true false' "$(./compare pault "${long[@]}")"
seen 'go-deb-version: 16 digits' 'true false' "$(./compare knqyf263 "${short[@]}")"
seen 'go-deb-version: 20 digits' 'false true' "$(./compare knqyf263 "${long[@]}")"
seen 'go-deb-version: nines' 'false true' "$(./compare knqyf263 "${nines[@]}")"
