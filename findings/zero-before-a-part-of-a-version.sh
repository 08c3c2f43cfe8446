#!/usr/bin/env bash
# 8.2.0716 and 8.2.716, as versions of Debian
#
# deb-version(7): digits are compared by their value as a number, so that these two are the same version.
# Guess: libraries that compare versions of Debian find them equal, as dpkg does.
# Seen: deb-version-compare 1.2.1 (npm) finds 8.2.0716 older, and univers 32.0.1 (Python) finds it newer. Both are as dpkg
# where the numbers differ. github.com/knqyf263/go-deb-version of November 2024 (Go) and python-debian 1.1.1 find them equal.
# A check for known faults, which compares with the version of the repair, reports one that is repaired, or the reverse.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install deb-version-compare@1.2.1
pip_install univers==32.0.1 python-debian==1.1.1
cat >go.mod <<'GO'
module finding
go 1.26
require github.com/knqyf263/go-deb-version v0.0.0-20241115132648-6f4aee6ccd23
GO
cat >main.go <<'GO'
package main

import (
	"fmt"
	"os"

	version "github.com/knqyf263/go-deb-version"
)

func main() {
	first, err := version.NewVersion(os.Args[1])
	second, other := version.NewVersion(os.Args[2])
	if err != nil || other != nil {
		panic("no version")
	}
	fmt.Println(first.Compare(second))
}
GO
go mod tidy 2>/dev/null
go build -o compare .
# compare LIBRARY FIRST SECOND
compare() {
    case $1 in
    dpkg)
        if dpkg --compare-versions "$2" lt "$3"; then echo older; elif dpkg --compare-versions "$2" eq "$3"; then
            echo equal
        else echo newer; fi ;;
    npm) node -p 'const [first, second] = process.argv.slice(1);
["older", "equal", "newer"][Math.sign(require("deb-version-compare")(first, second)) + 1]' "$2" "$3" ;;
    univers) v/bin/python -c '
import sys
from univers.versions import DebianVersion as Version
first, second = map(Version, sys.argv[1:])
print("older" if first < second else "equal" if first == second else "newer")' "$2" "$3" ;;
    python-debian) v/bin/python -c '
import sys
from debian.debian_support import NativeVersion as Version
first, second = map(Version, sys.argv[1:])
print("older" if first < second else "equal" if first == second else "newer")' "$2" "$3" ;;
    go) case $(./compare "$2" "$3") in 0) echo equal ;; -*) echo older ;; *) echo newer ;; esac ;;
    esac
}
for library in dpkg npm univers python-debian go; do
    seen "$library: 8.2.0715 and 8.2.716" older "$(compare $library 8.2.0715 8.2.716)"
done
for library in dpkg python-debian go; do
    seen "$library: 8.2.0716 and 8.2.716" equal "$(compare $library 8.2.0716 8.2.716)"
done
seen 'deb-version-compare: 8.2.0716 and 8.2.716' older "$(compare npm 8.2.0716 8.2.716)"
seen 'univers: 8.2.0716 and 8.2.716' newer "$(compare univers 8.2.0716 8.2.716)"
