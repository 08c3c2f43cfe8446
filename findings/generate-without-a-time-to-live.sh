#!/usr/bin/env bash
# $TTL 60
# $GENERATE 1-2 h$ A 192.0.2.$
#
# RFC 2308, section 4: the time of $TTL is that of all records behind it that state none. $GENERATE is a word of BIND, whose
# manual makes of it the lines that it stands for.
# Guess: a reader of zone files that knows both words gives the records the time of $TTL.
# Seen: github.com/miekg/dns 1.1.73 (Go) gives them 3600 seconds, its own default. It takes the time of $TTL for a plain
# line, and for one of $GENERATE that states a time. dnspython 2.9.2 (Python) and BIND 9.18 give 60.
# Addresses of a whole network live in caches for an hour, where their zone says a minute.
# shellcheck disable=SC2016 # words of zone files
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

cat >go.mod <<'GO'
module finding
go 1.26
require github.com/miekg/dns v1.1.73
GO
cat >main.go <<'GO'
package main

import (
	"fmt"
	"os"

	"github.com/miekg/dns"
)

func main() {
	zone := dns.NewZoneParser(os.Stdin, "example.", "zone")
	for record, ok := zone.Next(); ok; record, ok = zone.Next() {
		fmt.Print(record.Header().Name, " ", record.Header().Ttl, " ")
	}
	if err := zone.Err(); err != nil {
		fmt.Print(err)
	}
}
GO
go mod tidy 2>/dev/null
go build -o read .
pip_install dnspython==2.9.2
python() {
    v/bin/python -c '
import dns.zone, sys
zone = dns.zone.from_text(sys.stdin.read(), "example.", relativize=False, check_origin=False)
print(*(f"{name} {ttl}" for name, ttl, _ in zone.iterate_rdatas()), "")'
}
# zone LINE: a zone file of it, without SOA
zone() {
    printf '$TTL 60\n%s\n' "$1"
}
plain='h A 192.0.2.1' bare='$GENERATE 1-2 h$ A 192.0.2.$' timed='$GENERATE 1-2 h$ 300 A 192.0.2.$'
seen 'dnspython: plain' 'h.example. 60 ' "$(zone "$plain" | python)"
seen 'dnspython: $GENERATE' 'h1.example. 60 h2.example. 60 ' "$(zone "$bare" | python)"
seen 'miekg/dns: plain' 'h.example. 60 ' "$(zone "$plain" | ./read)"
seen 'miekg/dns: $GENERATE with a time' 'h1.example. 300 h2.example. 300 ' "$(zone "$timed" | ./read)"
seen 'miekg/dns: $GENERATE' 'h1.example. 3600 h2.example. 3600 ' "$(zone "$bare" | ./read)"
