#!/usr/bin/env bash
# Build-Depends: a [linux-any], ${misc:Depends}
#
# Debian's manual of policy, sections 7.1 and 11.1.1: a dependency may be for some architectures alone, where linux-any stands for all
# those with this kernel, and any-amd64 for amd64 with each kernel. deb-substvars(5): ${misc:Depends} is filled in at the build.
# Guess: the library for Debian's formats in Go writes the dependencies that it has read.
# Seen: pault.ag/go/debian 0.19.0 writes [any] for [linux-any], so that the dependency holds for Hurd, too, and misc:Depends without the
# dollar sign and the braces. Within a version, ${binary:Version} keeps them. For [any-amd64] it writes [any-any-any-amd64], a form that
# dpkg takes for the same, and the manual of policy does not have.
# A program that sorts or completes the dependencies of a package changes others, and no field says so.
# shellcheck disable=SC2016 # variables of Debian
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

cat >go.mod <<'GO'
module finding
go 1.26
require pault.ag/go/debian v0.19.0
GO
cat >main.go <<'GO'
package main

import (
	"fmt"
	"os"

	"pault.ag/go/debian/dependency"
)

func main() {
	for _, text := range os.Args[1:] {
		if found, err := dependency.Parse(text); err != nil {
			fmt.Println(err)
		} else {
			fmt.Println(found)
		}
	}
}
GO
go mod tidy 2>/dev/null
go build -o again .
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
each ./again \
    'a (>= 1:2~), b | c:any' 'a (>= 1:2~), b | c:any' \
    'a [!amd64] <!nocheck>' 'a [!amd64] <!nocheck>' \
    'a [linux-any]' 'a [any]' \
    'a [any-amd64]' 'a [any-any-any-amd64]' \
    'a [any-any-any-amd64]' 'a [any-any-any-amd64]' \
    'a (= ${binary:Version})' 'a (= ${binary:Version})' \
    '${misc:Depends}, a' 'misc:Depends, a'
