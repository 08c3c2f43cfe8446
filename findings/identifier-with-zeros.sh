#!/usr/bin/env bash
# a NID 10 0014:4fff:ff20:ee64
#
# RFC 6742, section 2.1: an identifier of a node is written as groups of hexadecimal digits, as those of an address of IPv6.
# Each group in its examples has four digits.
# Guess: what one program writes of such a record the others read.
# Seen: BIND 9.18 writes 14:4fff:ff20:ee64, which Knot 3.2.6, dnspython 2.9.2 (Python) and github.com/miekg/dns 1.1.73 (Go)
# refuse. NSD 4.6.1 reads it, and writes all zeros. Each of the others reads that.
# A zone that BIND has transferred and written cannot be moved to Knot.
# shellcheck disable=SC2016 # words of zone files
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

debian_install knot-dnssecutils libknot13 libdnssec9 libzscanner4 liblmdb0 libbpf1 libxdp1 liburcu8 \
    nsd libevent-2.1-7 libprotobuf-c1 libfstrm0 \
    bind9-utils bind9-libs libmaxminddb0 libuv1 libxml2 libicu72 libjson-c5 libnghttp2-14 libjemalloc2
pip_install dnspython==2.9.2
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
	record, err := dns.NewRR("a. 60 IN NID 10 " + os.Args[1])
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(dns.Field(record, 2))
}
GO
go mod tidy 2>/dev/null
# ask TOOL IDENTIFIER: what it writes of it, or says
ask() {
    printf '$TTL 60\n@ SOA ns.b. a.b. 1 2 3 4 5\n@ NS ns.b.\na NID 10 %s\n' "$2" >zone
    case $1 in
    bind) root/usr/bin/named-compilezone -q -k ignore -i none -o - example. zone ;;
    nsd) root/usr/sbin/nsd-checkzone -p example. zone ;;
    knot) root/usr/bin/kzonecheck -v -o example. zone 2>&1 ;;
    python) v/bin/python -c '
import dns.exception, dns.zone
try:
    print("NID", dns.zone.from_file("zone", "example.").get_rdataset("a", "NID")[0])
except dns.exception.SyntaxError as error:
    print("line 4 (%s)" % str(error).removeprefix("zone:5: "))' ;;
    go) go run . "$2" ;;
    esac | sed -n -e 's/.*NID[ \t]*10[ \t]*//p' -e 's/.*line 4 (\(.*\))$/\1/p' -e 's/^dns: \(.*\): ".*/\1/p'
}
LONG=0014:4fff:ff20:ee64
SHORT=14:4fff:ff20:ee64
seen BIND $SHORT "$(ask bind $LONG)"
seen NSD $LONG "$(ask nsd $SHORT)"
seen 'Knot: all zeros' '' "$(ask knot $LONG)"
seen 'Knot: as BIND writes it' 'invalid hexadecimal character' "$(ask knot $SHORT)"
seen 'dnspython: all zeros' $LONG "$(ask python $LONG)"
seen 'dnspython: as BIND writes it' 'invalid formatted hex string' "$(ask python $SHORT)"
seen 'miekg/dns: as BIND writes it' 'bad NID/L64 NodeID/Locator64' "$(ask go $SHORT)"
