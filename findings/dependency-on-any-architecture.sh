#!/usr/bin/env bash
# Depends: c:any
#
# Debian's manual of policy and deb-control(5): :any behind a name lets a package of whatever architecture satisfy the
# dependency, and <!nocheck> is for builds with tests alone.
# Guess: a library that checks dependencies finds that the package c satisfies this one.
# Seen: deb-pkg-tools 8.4 (Python) takes `c:any` for the name, so that no package satisfies it, and drops <!nocheck>.
# python-debian 1.1.1 gives the name c, and the profile.
# Many packages depend on python3:any and perl:any; a repository that is checked by this library looks broken.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install deb-pkg-tools==8.4 python-debian==1.1.1
# check EXPRESSION: whether the package c satisfies it, None if it says nothing about c
check() {
    v/bin/python -c '
import sys
from deb_pkg_tools.deps import parse_depends
print(parse_depends(sys.argv[1]).matches("c", "1"))' "$1"
}
parse() {
    v/bin/python -c '
import sys
from debian.deb822 import PkgRelation
relation = PkgRelation.parse_relations(sys.argv[1])[0][0]
print(relation["name"], relation["archqual"], PkgRelation.str([[relation]]))' "$1"
}
seen 'deb-pkg-tools: c' True "$(check c)"
seen 'deb-pkg-tools: c (>= 1)' True "$(check 'c (>= 1)')"
seen 'deb-pkg-tools: c:any' None "$(check c:any)"
seen 'deb-pkg-tools: c <!nocheck>' c "$(v/bin/python -c '
from deb_pkg_tools.deps import parse_depends
print(parse_depends("c <!nocheck>"))')"
seen 'python-debian: c:any' 'c any c:any' "$(parse c:any)"
seen 'python-debian: c <!nocheck>' 'c None c <!nocheck>' "$(parse 'c <!nocheck>')"
