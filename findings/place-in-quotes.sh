#!/usr/bin/env bash
# a GPOS -32.6882 116.8652 10.0, and a X25 311061700956
#
# RFC 1712, section 3, and RFC 1183, section 3.1: the data are texts of digits. RFC 1035, section 5.1: a text may stand in quotes.
# Guess: what one program writes of them another reads.
# Seen: BIND 9.18 writes them in quotes, which github.com/miekg/dns 1.1.73 (Go) refuses. Net::DNS 1.36 (Perl) makes the
# place 0 0 0 of them, with a warning. Knot 3.2.6 refuses both types in either form, "invalid number", even the example of
# RFC 1183. dnspython 2.9.2 (Python) reads both forms.
# A place moves to the Gulf of Guinea by way of a zone that BIND has written.
# shellcheck disable=SC2016 # words of zone files
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

debian_install knot-dnssecutils libknot13 libdnssec9 libzscanner4 liblmdb0 libbpf1 libxdp1 liburcu8 \
    libnet-dns-perl=1.36-1+deb12u1 libprotobuf-c1 libfstrm0 \
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
	_, err := dns.NewRR("a. 60 IN " + os.Args[1])
	fmt.Println(err)
}
GO
go mod tidy 2>/dev/null
# ask TOOL DATA: what it writes of it, or says
ask() {
    printf '$TTL 60\n@ SOA ns.b. a.b. 1 2 3 4 5\n@ NS ns.b.\na %s\n' "$2" >zone
    case $1 in
    bind) root/usr/bin/named-compilezone -q -k ignore -i none -o - example. zone | sed -n 's/^a\..*IN[ \t]*//p' ;;
    knot) root/usr/bin/kzonecheck -v -o example. zone 2>&1 | sed -n 's/.*line 4 (\(.*\))$/\1/p' ;;
    perl) PERL5LIB=root/usr/share/perl5 perl -MNet::DNS -e '
        print Net::DNS::RR->new("a. 60 IN $ARGV[0]")->rdstring, "\n"' "$2" 2>/dev/null ;;
    python) v/bin/python -c '
import dns.zone
print(dns.zone.from_file("zone", "example.")["a"].rdatasets[0][0])' ;;
    go) go run . "$2" ;;
    esac
}
PLACE='GPOS -32.6882 116.8652 10.0'
NUMBER='X25 311061700956'
written=$(ask bind "$PLACE" | tr -s '\t ' '  ')
seen 'BIND writes' 'GPOS "-32.6882" "116.8652" "10.0"' "$written"
number=$(ask bind "$NUMBER" | tr -s '\t ' '  ')
seen 'BIND writes' 'X25 "311061700956"' "$number"
seen 'miekg/dns: GPOS' '<nil>' "$(ask go "$PLACE")"
seen 'miekg/dns: GPOS, in quotes' 'dns: bad GPOS Longitude: "\"" at line: 1:15' "$(ask go "$written")"
seen 'miekg/dns: X25' '<nil>' "$(ask go "$NUMBER")"
seen 'miekg/dns: X25, in quotes' 'dns: garbage after rdata: "311061700956" at line: 1:27' "$(ask go "$number")"
seen 'Net::DNS: GPOS' '-32.6882 116.8652 10' "$(ask perl "$PLACE")"
seen 'Net::DNS: GPOS, in quotes' '0 0 0' "$(ask perl "$written")"
for data in "$PLACE" "$written" "$NUMBER" "$number"; do
    seen "Knot: $data" 'invalid number' "$(ask knot "$data")"
done
seen 'dnspython: GPOS, in quotes' '-32.6882 116.8652 10.0' "$(ask python "$written")"
