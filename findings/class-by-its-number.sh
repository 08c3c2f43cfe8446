#!/usr/bin/env bash
# a CLASS1 A 192.0.2.1
#
# RFC 3597, section 5: a class may be written as CLASS and its number in place of its name, one that is known as well: one
# of its examples has `CLASS1 TYPE1` before an address. 1 is IN.
# Guess: a program that knows IN knows CLASS1.
# Seen: Knot 3.2.6 and dnslib 0.9.26 (Python) refuse it. BIND 9.18, NSD 4.6.1 and dnspython 2.9.2 (Python) read it, and
# github.com/miekg/dns 1.1.73 (Go) writes it for a record of a type that it does not know, TYPE65280.
# Knot refuses the whole zone that a program in Go wrote, for one such record.
# shellcheck disable=SC2016 # words of zone files
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

debian_install knot-dnssecutils libknot13 libdnssec9 libzscanner4 liblmdb0 libbpf1 libxdp1 liburcu8 \
    nsd libevent-2.1-7 libprotobuf-c1 libfstrm0 \
    bind9-utils bind9-libs libmaxminddb0 libuv1 libxml2 libicu72 libjson-c5 libnghttp2-14 libjemalloc2
pip_install dnspython==2.9.2 dnslib==0.9.26
# ask TOOL LINE: what it says about a zone with this line
ask() {
    printf '$TTL 60\n@ SOA ns.b. a.b. 1 2 3 4 5\n@ NS ns.b.\n%s\n' "$2" >zone
    case $1 in
    knot) root/usr/bin/kzonecheck -v -o example. zone 2>&1 | sed -n 's/.*line 4 (\(.*\))$/\1/p' ;;
    nsd) root/usr/sbin/nsd-checkzone example. zone | sed -n 's/.*is ok/ok/p' ;;
    bind) root/usr/bin/named-checkzone -q -k ignore -i none example. zone && echo ok ;;
    esac
}
seen 'Knot: IN' '' "$(ask knot 'a IN A 192.0.2.1')"
seen 'Knot: TYPE1' '' "$(ask knot 'a IN TYPE1 \# 4 c0000201')"
seen 'Knot: CLASS1' 'unsupported record type' "$(ask knot 'a CLASS1 A 192.0.2.1')"
seen 'NSD: CLASS1' ok "$(ask nsd 'a CLASS1 A 192.0.2.1')"
seen 'BIND: CLASS1' ok "$(ask bind 'a CLASS1 A 192.0.2.1')"
seen 'dnspython: CLASS1' 192.0.2.1 "$(v/bin/python -c '
import dns.zone
print(dns.zone.from_file("zone", "example.").get_rdataset("a", "A")[0])')"
seen 'dnslib: CLASS1' 'QTYPE: Invalid reverse lookup: [CLASS1]' "$(v/bin/python -c '
import dnslib
try:
    print(dnslib.RR.fromZone("a.b. 60 CLASS1 A 192.0.2.1"))
except dnslib.DNSError as error:
    print(error)')"

cat >go.mod <<'GO'
module finding
go 1.26
require github.com/miekg/dns v1.1.73
GO
cat >main.go <<'GO'
package main

import (
	"fmt"

	"github.com/miekg/dns"
)

func main() {
	record, err := dns.NewRR(`a. 60 IN TYPE65280 \# 1 00`)
	fmt.Println(record, err)
}
GO
go mod tidy 2>/dev/null
written=$(go run . | tr '\t' ' ')
seen 'miekg/dns: TYPE65280' 'a. 60 CLASS1 TYPE65280 \# 1 00 <nil>' "$written"
seen 'Knot: of that' 'unsupported record type' "$(ask knot "${written/a./a}")"
seen 'Knot: the same with IN' '' "$(ask knot 'a 60 IN TYPE65280 \# 1 00')"
