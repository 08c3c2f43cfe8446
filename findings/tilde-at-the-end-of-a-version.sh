#!/usr/bin/env bash
# Breaks: a (<< 2~), and a_1%3a2-1_amd64.deb
#
# deb-version(7): a tilde sorts before the end of a version, so that 2~ is the least version that begins with 2; dependencies
# on the versions of backports end so. APT keeps a package whose version has an epoch under a name with %3a for the colon.
# Guess: a library that compares versions of Debian, and reads names of its files, takes both.
# Seen: debian-inspector 31.1.1 (Python) refuses 2~ as an invalid version, although it knows 2~a, and although it reads the
# dependency. It refuses 1.0+ as well, and the name with %3a. python-debian 1.1.1 and dpkg take the versions.
# A check of a folder of APT's packages ends at the first one with an epoch.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install debian-inspector==31.1.1 python-debian==1.1.1
inspector() {
    v/bin/python -c '
import sys
from debian_inspector.version import Version
try:
    print("earlier" if Version.from_string(sys.argv[1]) < Version.from_string(sys.argv[2]) else "later")
except ValueError as error:
    print(error)' "$@"
}
file() {
    v/bin/python -c '
import sys
from debian_inspector.package import DebArchive
try:
    print(DebArchive.from_filename(sys.argv[1]).version)
except ValueError as error:
    print(error)' "$1"
}
debian() {
    v/bin/python -c '
import sys
from debian.debian_support import Version
print("earlier" if Version(sys.argv[1]) < Version(sys.argv[2]) else "later")' "$@"
}
seen 'debian-inspector: 2~a and 2' earlier "$(inspector 2~a 2)"
seen 'debian-inspector: 2~ and 2' 'Invalid version string: "2~"' "$(inspector 2~ 2)"
seen 'debian-inspector: 1.0+ and 1.0' 'Invalid version string: "1.0+"' "$(inspector 1.0+ 1.0)"
seen 'python-debian: 2~ and 2' earlier "$(debian 2~ 2)"
seen 'python-debian: 1.0+ and 1.0' later "$(debian 1.0+ 1.0)"
seen 'dpkg: 2~ and 2' earlier "$(dpkg --compare-versions 2~ lt 2 && echo earlier)"
seen 'dpkg: 1.0+ and 1.0' later "$(dpkg --compare-versions 1.0+ gt 1.0 && echo later)"
seen 'debian-inspector: a_2-1_amd64.deb' 2-1 "$(file a_2-1_amd64.deb)"
seen 'debian-inspector: a_1%3a2-1_amd64.deb' 'Invalid version string: "1%3a2-1"' "$(file a_1%3a2-1_amd64.deb)"
