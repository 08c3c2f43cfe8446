#!/usr/bin/env bash
# <1.0.post1
#
# PEP 440, "Exclusive ordered comparison": 1.0 is before 1.0.post1, and 1.0.post1 behind 1.0.post0, as the version that is named is itself
# such a release; and so it is with 1.0a1 and 1.0a2.
# Guess: a library in JavaScript agrees with packaging of Python, which pip has.
# Seen: @renovatebot/pep440 5.0.1 (npm) finds 1.0 not before 1.0.post1, 1.0.post1 not behind 1.0.post0, nor before 1.0.post2, and 1.0a1
# not before 1.0a2. packaging 26.4 (Python) finds all of them.
# An update that a project allows is not offered.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install @renovatebot/pep440@5.0.1
pip_install packaging==26.4
# each VERSION SPECIFIER PACKAGING PEP440
each() {
    seen "packaging: $1 for $2" "$3" "$(v/bin/python -c '
import sys
from packaging.specifiers import SpecifierSet
print("yes" if SpecifierSet(sys.argv[2]).contains(sys.argv[1], prereleases=True) else "no")' "$1" "$2")"
    seen '  @renovatebot/pep440' "$4" "$(node --input-type=module -e '
        import { satisfies } from "@renovatebot/pep440";
        console.log(satisfies(...process.argv.slice(1), { prereleases: true }) ? "yes" : "no");' "$1" "$2")"
}
each 1.0 '==1.0' yes yes
each 1.0.post1 '>=1.0.post1' yes yes
each 0.9 '<1.0.post1' yes yes
each 1.0 '<1.0.post1' yes no
each 1.0.post1 '>1.0.post0' yes no
each 1.0a1 '<1.0a2' yes no
each 1.0.post1 '<1.0.post2' yes no
each 1.0.post2 '<1.0.post1' no no
