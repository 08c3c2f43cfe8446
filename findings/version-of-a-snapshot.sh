#!/usr/bin/env bash
# 1.0_git20200101 of Alpine, and 1.1.1-pre1 of OpenSSL
#
# Alpine's manual of apk, and its APKBUILD reference: the suffixes of a version are _alpha, _beta, _pre and _rc, which come before it,
# and _cvs, _svn, _git, _hg and _p, which come after it. OpenSSL called the versions before 1.1.1 first 1.1.1-pre1.
# Guess: a library that compares versions of both knows them.
# Seen: univers 32.0.1 (Python) calls all versions with _git, _svn, _cvs and _hg invalid, and finds 1.1.1-pre1 later than 1.1.1. It
# knows _p, and finds 1.1.1-beta1 earlier.
# Many packages of Alpine have such versions; a check of them ends in an error.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install univers==32.0.1
compare() {
    v/bin/python -c '
import sys
from univers import versions
kind, one, other = sys.argv[1:]
kind = getattr(versions, kind)
try:
    print("earlier" if kind(one) < kind(other) else "later" if kind(one) > kind(other) else "equal")
except versions.InvalidVersion:
    print("invalid")' "$@"
}
seen 'Alpine: 1.0_p1 and 1.0' later "$(compare AlpineLinuxVersion 1.0_p1 1.0)"
seen 'Alpine: 1.0_rc1 and 1.0' earlier "$(compare AlpineLinuxVersion 1.0_rc1 1.0)"
for suffix in cvs svn git hg; do
    seen "Alpine: 1.0_${suffix}20200101 and 1.0" invalid "$(compare AlpineLinuxVersion "1.0_${suffix}20200101" 1.0)"
done
seen 'OpenSSL: 1.1.1-beta1 and 1.1.1' earlier "$(compare OpensslVersion 1.1.1-beta1 1.1.1)"
seen 'OpenSSL: 1.1.1-pre1 and 1.1.1' later "$(compare OpensslVersion 1.1.1-pre1 1.1.1)"
