#!/usr/bin/env bash
# $GENERATE 1-2 h$ TXT "rack $"
#
# RFC 1035, section 5.1: a text in quotes is one text, blanks included. BIND's manual, "$GENERATE": the data follow the type,
# and each $ in them is replaced; a text with a blank in it stands in quotes.
# Guess: the readers that know $GENERATE give one text, `rack 1`, as for the line that it stands for.
# Seen: BIND 9.18, whose word this is, gives two texts, `rack` and `1`, without an error: it takes the quotes away before it
# reads the data. dnspython 2.9.2 (Python) refuses the line, and calls the text an unknown type.
# github.com/miekg/dns 1.1.73 (Go) gives one text.
# Policies of mail, which are texts with blanks, cannot be generated; clients that join the texts read `rack1`.
# shellcheck disable=SC2016 # words of zone files
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

debian_install bind9-utils bind9-libs libmaxminddb0 libfstrm0 libprotobuf-c1 libuv1 libxml2 libicu72 libjson-c5 \
    liblmdb0 libnghttp2-14 libjemalloc2
pip_install dnspython==2.9.2
# zone LINE: a zone file with it
zone() {
    printf '$TTL 60\n@ SOA ns.b. a.b. 1 2 3 4 5\n@ NS ns.b.\n%s\n' "$1" >zone
}
bind() {
    root/usr/bin/named-compilezone -k ignore -i none -o - example. zone 2>&1 | sed -n 's|.*TXT[ \t]*||p' | paste -sd ' '
}
python() {
    v/bin/python -c '
import dns.exception, dns.zone
try:
    zone = dns.zone.from_file("zone", "example.", relativize=False)
    print(*(data for _, _, data in zone.iterate_rdatas("TXT")))
except dns.exception.SyntaxError as error:
    print(error)'
}
root/usr/bin/named-checkzone -v
zone 'h TXT "rack 1"'
seen 'BIND: plain' '"rack 1"' "$(bind)"
seen 'dnspython: plain' '"rack 1"' "$(python)"
zone '$GENERATE 1-2 h$ TXT rack$'
seen 'BIND: $GENERATE, without a blank' '"rack1" "rack2"' "$(bind)"
seen 'dnspython: $GENERATE, without a blank' '"rack1" "rack2"' "$(python)"
zone '$GENERATE 1-2 h$ TXT "rack $"'
seen 'BIND: $GENERATE' '"rack" "1" "rack" "2"' "$(bind)"
seen 'dnspython: $GENERATE' "zone:4: unknown rdatatype 'rack \$'" "$(python)"

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
		if text, ok := record.(*dns.TXT); ok {
			fmt.Printf("%q ", text.Txt)
		}
	}
	fmt.Println(zone.Err())
}
GO
go mod tidy 2>/dev/null
seen 'miekg/dns: $GENERATE' '["rack 1"] ["rack 2"] <nil>' "$(go run . <zone)"
