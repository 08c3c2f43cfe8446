#!/usr/bin/env bash
# HOME_URL="https://a.example/?a=b", VERSION='1 (one)', VERSION_CODENAME="", in /etc/os-release
#
# os-release(5): the file holds assignments of variables, which a shell can read. Values may be in double or single quotes, and quotes,
# the dollar sign, the backslash and the backtick are escaped as in a shell. Two of its examples are VERSION_ID=17 and VERSION_ID=11.04.
# Guess: libraries for this one file read these lines as the shell does.
# Seen: linux-release-info 3.0.0 (npm) loses each line with a second equal sign, and leaves backslashes in values. os-release 1.0.1 (PyPI)
# refuses the file for VERSION_ID=11.04 without quotes and for an empty value, even "". github.com/acobaugh/osrelease 0.1.0 (Go) leaves
# single quotes around a value, and distro 1.9.0 (Python) the backslash of \$.
# Whether a program knows its system then depends on how a distribution writes it.
# shellcheck disable=SC2016 # words of a shell
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install linux-release-info@3.0.0
pip_install os-release==1.0.1 distro==1.9.0
cat >go.mod <<'GO'
module finding
go 1.26
require github.com/acobaugh/osrelease v0.1.0
GO
cat >main.go <<'GO'
package main

import (
	"fmt"
	"os"

	"github.com/acobaugh/osrelease"
)

func main() {
	for _, line := range os.Args[1:] {
		found, err := osrelease.ReadString(line + "\n")
		fmt.Println(found["A"], err)
	}
}
GO
go mod tidy 2>/dev/null
go build -o osrelease .
cat >read.py <<'PY'
import sys
library, *lines = sys.argv[1:]
for line in lines:
    with open("file", "w") as file:
        file.write(line + "\n")
    if library == "distro":
        from distro import LinuxDistribution
        print(LinuxDistribution(include_lsb=False, include_uname=False, os_release_file="file").os_release_info().get("a", "none"))
    else:
        from os_release import parse_str
        from os_release.parser import OsReleaseParseException
        try:
            print(parse_str(line + "\n").get("A", "none"))
        except (OsReleaseParseException, IndexError):
            print("refused")
PY
cat >linux-release-info.cjs <<'JS'
const { releaseInfo } = require("linux-release-info");
for (const line of process.argv.slice(2)) {
    require("fs").writeFileSync("file", line + "\n");
    console.log(releaseInfo({ mode: "sync", custom_file: "file" }).a ?? "none");
}
JS
cat >shell.sh <<'SH'
for line; do
    eval "$line"
    echo "$A"
done
SH
# each COMMAND CASE EXPECTED...: COMMAND runs once, with all cases, and prints a line for each
each() {
    local command cases=() expected=() found i
    read -ra command <<<"$1"
    shift
    while (($#)); do
        cases+=("$1")
        expected+=("$2")
        shift 2
    done
    mapfile -t found < <("${command[@]}" "${cases[@]}")
    for i in "${!cases[@]}"; do seen "${command[*]:1} ${cases[i]}" "${expected[i]}" "${found[i]-}"; done
}
LINES_OF_FILE=('A="a b"' "A='a b'" 'A="a=b"' 'A="\"a\" \$"' A=11.04 'A=""')
# all COMMAND EXPECTED...: of these lines
all() {
    local cases=() i
    for i in "${!LINES_OF_FILE[@]}"; do cases+=("${LINES_OF_FILE[i]}" "${@:i+2:1}"); done
    each "$1" "${cases[@]}"
}
all 'bash shell.sh' 'a b' 'a b' a=b '"a" $' 11.04 ''
all 'node linux-release-info.cjs' 'a b' 'a b' none '\a\ \$' 11.04 ''
all 'v/bin/python read.py os-release' 'a b' 'a b' a=b '"a" $' refused refused
all 'v/bin/python read.py distro' 'a b' 'a b' a=b '"a" \$' 11.04 ''
all './osrelease' 'a b <nil>' "'a b' <nil>" 'a=b <nil>' '"a" $ <nil>' '11.04 <nil>' ' <nil>'
