#!/usr/bin/env bash
# >1.2, <=1.2, ^0 and 2, as ranges of versions in npm
#
# The manual of semver, the library of npm: a version that lacks a part stands for all versions with any value of that part, so
# that `>1.2` begins at 1.3.0, `<=1.2` and `2` hold 1.2.9 and 2.5.0, and `^0` all below 1.0.0.
# Guess: a library that reads ranges of npm gives the same, since it reads ~1.2 and 1.x so.
# Seen: univers 32.0.1 (Python) puts 0 for the missing part: its `>1.2` holds 1.2.9, its `<=1.2` and `2` hold 1.2.0 and 2.0.0
# alone, and its `^0` holds 0.0.0 alone. An empty range, which is any version, holds none.
# Lists of faults name versions in this form; a check on this library finds no fault in 1.2.9, or one where there is none.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install semver@7.7.3
pip_install univers==32.0.1
js() {
    node -p 'require("semver").satisfies(process.argv[2], process.argv[1])' "$@"
}
python() {
    v/bin/python -c '
import sys
from univers.version_range import NpmVersionRange
from univers.versions import SemverVersion
print(str(SemverVersion(sys.argv[2]) in NpmVersionRange.from_native(sys.argv[1])).lower())' "$@"
}
# both RANGE VERSION SEMVER UNIVERS
both() {
    seen "semver: $2 in $1" "$3" "$(js "$1" "$2")"
    seen "univers: $2 in $1" "$4" "$(python "$1" "$2")"
}
both '~1.2' 1.2.9 true true
both '1.x' 1.2.9 true true
both '>1.2' 1.2.9 false true
both '<=1.2' 1.2.9 true false
both 2 2.5.0 true false
both '^0' 0.5.0 true false
both '' 1.0.0 true false
