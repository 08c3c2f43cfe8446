#!/usr/bin/env bash
# pkg:generic/a@1?file=a+b
#
# Package-URL (ECMA-427), "Rules for each component": values of qualifiers are percent-encoded, and nothing gives the plus
# sign another meaning, as forms of HTML do. The scheme is case-insensitive.
# Guess: the libraries of the project give a+b, read PKG:, and write one form of a version.
# Seen: packageurl-js 2.0.1 (npm) gives a and b with a blank, and fails at version v1 of a package of Go: "throws is not
# defined". packageurl-python 0.17.6 gives a+b and reads v1, and it refuses PKG:, which the other one reads. Of the version
# 1+b the one writes 1+b, and the other 1%2Bb.
# Lists of packages that are compared by these texts differ between two tools for all versions of Debian with a plus sign.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install packageurl-js@2.0.1
pip_install packageurl-python==0.17.6
js() {
    node -e 'try { console.log(require("packageurl-js").PackageURL.fromString(process.argv[1])[process.argv[2]]) }
catch (error) { console.log(error.message) }' "$@"
}
python() {
    v/bin/python -c '
import sys
from packageurl import PackageURL
try:
    print(getattr(PackageURL.from_string(sys.argv[1]), sys.argv[2]))
except ValueError as error:
    print(error)' "$@"
}
text() {
    node -p 'require("packageurl-js").PackageURL.fromString(process.argv[1]).toString()' "$1"
    v/bin/python -c 'import packageurl, sys; print(packageurl.PackageURL.from_string(sys.argv[1]))' "$1"
}
seen 'Python: plus' "{'file': 'a+b'}" "$(python 'pkg:generic/a@1?file=a+b' qualifiers)"
seen 'JavaScript: %2B' 'a+b' "$(js 'pkg:generic/a@1?file=a%2Bb' qualifiers | sed "s/.*file: '\(.*\)'.*/\1/")"
seen 'JavaScript: plus' 'a b' "$(js 'pkg:generic/a@1?file=a+b' qualifiers | sed "s/.*file: '\(.*\)'.*/\1/")"
seen 'Python: Go, v1' v1 "$(python pkg:golang/a.example/b@v1 version)"
seen 'JavaScript: Go, v1.0.0' v1.0.0 "$(js pkg:golang/a.example/b@v1.0.0 version)"
seen 'JavaScript: Go, v1' 'throws is not defined' "$(js pkg:golang/a.example/b@v1 version)"
seen 'JavaScript: PKG:' 1 "$(js PKG:generic/a@1 version)"
seen 'Python: PKG:' refused "$(python PKG:generic/a@1 version | sed 's/^purl is missing the required "pkg" scheme.*/refused/')"
seen 'both, of 1+b' 'pkg:deb/debian/a@1+b pkg:deb/debian/a@1%2Bb' "$(text pkg:deb/debian/a@1%2Bb | paste -sd ' ')"
