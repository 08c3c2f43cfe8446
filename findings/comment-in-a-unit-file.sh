#!/usr/bin/env bash
# # the old path was C:\
# ExecStart=/usr/sbin/server
#
# systemd.syntax(7): a line that ends with a backslash goes on with the next line that is no comment; lines that begin
# with # or ; are ignored. So a comment does not go on, and one within a longer line is passed over.
# Guess: the reader of unit files in go-systemd does as systemd does.
# Seen: github.com/coreos/go-systemd/v22 22.5.0 (Go) takes the line after a comment that ends with a backslash for a
# part of the comment, without an error. It takes a comment within a longer line for a part of the value, and fails.
# A tool on this library may check or copy a unit file without the line that starts the server.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

cat >go.mod <<'GO'
module finding
go 1.26
require github.com/coreos/go-systemd/v22 v22.5.0
GO
cat >main.go <<'GO'
package main

import (
	"fmt"
	"os"

	"github.com/coreos/go-systemd/v22/unit"
)

func main() {
	options, err := unit.Deserialize(os.Stdin)
	for _, option := range options {
		fmt.Printf("%s=%q ", option.Name, option.Value)
	}
	fmt.Println(err == nil)
}
GO
go mod tidy 2>/dev/null
go build -o read .
seen 'a comment' 'ExecStart="/bin/true" true' "$(printf '[Service]\n# old\nExecStart=/bin/true\n' | ./read)"
seen 'a comment that ends with a backslash' true "$(printf '[Service]\n# C:\\\nExecStart=/bin/true\n' | ./read)"
longer=$(printf '[Service]\nExecStart=/bin/echo \\\n# words\n  hello\n' | ./read)
seen 'a comment within a longer line' 'ExecStart="/bin/echo \\\n# words" false' "$longer"
