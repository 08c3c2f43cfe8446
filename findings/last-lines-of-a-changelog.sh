#!/usr/bin/env bash
# Local variables: at the end of debian/changelog, and Sun,  1 Nov 2026
#
# deb-changelog(5): variables of Emacs or Vim at the end of the file should be accepted, and parsing may stop there; the day of a month has
# one digit or two.
# Guess: a library for this format reads both, as dpkg does.
# Seen: pault.ag/go/debian 0.19.0 (Go) refuses the whole file for these lines, for a comment behind the last entry, which a hash begins,
# and for a day of one digit. dpkg-parsechangelog 1.21.23 reads all of them.
# Where entries were added by hand over decades, such a program stops at the oldest one.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

debian_install dpkg-dev=1.21.23 libdpkg-perl=1.21.23
cat >go.mod <<'GO'
module finding
go 1.26
require pault.ag/go/debian v0.19.0
GO
cat >main.go <<'GO'
package main

import (
	"fmt"

	"pault.ag/go/debian/changelog"
)

func main() {
	entries, err := changelog.ParseFile("changelog")
	if err != nil {
		fmt.Println("refused")
		return
	}
	for _, entry := range entries {
		fmt.Println(entry.Version, entry.When.Day())
	}
}
GO
go mod tidy 2>/dev/null
go build -o read .
# both NAME DAY END OF_GO: of a changelog with this day and this end
both() {
    printf 'a (1) unstable; urgency=low\n\n  * b\n\n -- A <a@a.example>  Sun, %s Nov 2026 08:00:00 +0000\n%s' "$2" "$3" >changelog
    seen "Go: $1" "$4" "$(./read)"
    seen "dpkg-parsechangelog: $1" 1 \
        "$(perl -I root/usr/share/perl5 root/usr/bin/dpkg-parsechangelog -l changelog -S Version)"
}
both 'plain' 01 '' '1 1'
both 'local variables' 01 $'\nLocal variables:\nmode: debian-changelog\nEnd:\n' refused
both 'a modeline' 01 $'\nvim: et\n' refused
both 'a comment' 01 $'\n# end\n' refused
both '1, and a blank before it' ' 1' '' refused
both '1' 1 '' refused
