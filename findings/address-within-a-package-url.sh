#!/usr/bin/env bash
# pkg:generic/openssl@1.1.10g?download_url=https://a.example/b, by three libraries of its project
#
# Package URL: a package has one canonical text, so that SBOMs and lists of vulnerabilities can be compared. A name may hold an
# encoded slash, which is no divider.
# Guess: the libraries of the project for Python, Node and Go read a text, and write one and the same canonical text.
# Seen: packageurl-python 0.17.6 leaves colons and slashes of a qualifier, packageurl-js 2.0.1 encodes both, and packageurl-go
# 0.1.7 slashes alone. Of pkg:generic/a%2Fb@1, Python makes pkg:generic/a/b@1, another package. Names of Go in small letters, and
# of Fedora, are a matter of the library, too: github.com/A/B is github.com/a/b in Go alone, and Fedora is fedora but in Python.
# A tool that compares texts of two SBOMs finds a package that is only in one of them, for its address.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install packageurl-python==0.17.6
npm_install packageurl-js@2.0.1
cat >go.mod <<'GO'
module finding
go 1.26
require github.com/package-url/packageurl-go v0.1.7
GO
cat >main.go <<'GO'
package main

import (
	"fmt"
	"os"

	packageurl "github.com/package-url/packageurl-go"
)

func main() {
	read, err := packageurl.FromString(os.Args[1])
	fmt.Println(read.ToString())
	if err != nil {
		os.Exit(1)
	}
}
GO
go mod tidy 2>/dev/null
go build -o canonical .
# canonical LANGUAGE TEXT
canonical() {
    case $1 in
    Python) v/bin/python -c '
import sys
from packageurl import PackageURL
print(PackageURL.from_string(sys.argv[1]).to_string())' "$2" ;;
    Node) node -p 'require("packageurl-js").PackageURL.fromString(process.argv[1]).toString()' "$2" ;;
    Go) ./canonical "$2" ;;
    esac
}
text='pkg:generic/a@1?download_url=https://a.example/b'
seen 'Python: an address' "$text" "$(canonical Python "$text")"
seen 'Node: an address' 'pkg:generic/a@1?download_url=https%3A%2F%2Fa.example%2Fb' "$(canonical Node "$text")"
seen 'Go: an address' 'pkg:generic/a@1?download_url=https:%2F%2Fa.example%2Fb' "$(canonical Go "$text")"
seen 'Python: a slash in a name' pkg:generic/a/b@1 "$(canonical Python pkg:generic/a%2Fb@1)"
for language in Node Go; do
    seen "$language: a slash in a name" pkg:generic/a%2Fb@1 "$(canonical $language pkg:generic/a%2Fb@1)"
done
seen 'Go: capitals of Go' pkg:golang/github.com/a/b@v1.0.0 "$(canonical Go pkg:golang/github.com/A/B@v1.0.0)"
for language in Node Python; do
    seen "$language: capitals of Go" pkg:golang/github.com/A/B@v1.0.0 "$(canonical $language pkg:golang/github.com/A/B@v1.0.0)"
done
seen 'Python: Fedora' pkg:rpm/Fedora/curl@7 "$(canonical Python pkg:rpm/Fedora/curl@7)"
for language in Node Go; do
    seen "$language: Fedora" pkg:rpm/fedora/curl@7 "$(canonical $language pkg:rpm/Fedora/curl@7)"
done
