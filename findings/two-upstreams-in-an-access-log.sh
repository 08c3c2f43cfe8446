#!/usr/bin/env bash
# 192.0.2.1:80, 192.0.2.2:80 502, 200, for $upstream_addr $upstream_status
#
# The manual of nginx, ngx_http_upstream_module: where several servers were asked, their addresses stand with a comma and a blank between
# them in $upstream_addr, and times and statuses alike. ngx_http_log_module takes $a and ${a} for a variable, as each string of a
# configuration does.
# Guess: a reader of logs that takes the format of nginx as it stands finds the fields, or gives an error.
# Seen: gonx of Go, at the commit d96bd26e3b2c, ends $upstream_addr at the blank, gives the second address for the status, and drops the
# rest of the line, without an error; so it does with any text behind the format. It does not know ${a}.
# Counts of statuses then lack the requests which went wrong at the first server, and those alone.
# shellcheck disable=SC2016 # variables of nginx
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

mkdir src # beside the modules, as this one has no go.mod of its own
cd src
cat >go.mod <<'GO'
module finding
go 1.26
require github.com/satyrius/gonx v1.3.1-0.20181123214749-d96bd26e3b2c
GO
cat >main.go <<'GO'
package main

import (
	"fmt"
	"os"

	"github.com/satyrius/gonx"
)

func main() {
	entry, err := gonx.NewParser(os.Args[1]).ParseString(os.Args[2])
	if err != nil {
		fmt.Println("refused")
		return
	}
	address, _ := entry.Field("a")
	status, _ := entry.Field("s")
	fmt.Printf("%s|%s\n", address, status)
}
GO
go mod tidy 2>/dev/null
go build -o read .
seen 'one server' '192.0.2.1:80|200' "$(./read '$a $s' '192.0.2.1:80 200')"
seen 'two servers' '192.0.2.1:80,|192.0.2.2:80' "$(./read '$a $s' '192.0.2.1:80, 192.0.2.2:80 502, 200')"
seen 'text behind the format' '192.0.2.1:80|200' "$(./read '$a $s' '192.0.2.1:80 200 more')"
seen '${a}' refused "$(./read '${a} $s' '192.0.2.1:80 200')"
seen 'quotes' '192.0.2.1:80, 192.0.2.2:80|502, 200' "$(./read '"$a" "$s"' '"192.0.2.1:80, 192.0.2.2:80" "502, 200"')"
