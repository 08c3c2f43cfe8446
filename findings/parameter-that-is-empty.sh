#!/usr/bin/env bash
# a HTTPS 1 . alpn=h2 no-default-alpn=""
#
# RFC 9460, section 7.1.1: the value of no-default-alpn has to be empty. Section 2.1: a parameter without an equal sign is
# one whose value is empty, and appendix A lets a value be two quotes.
# Guess: programs take no-default-alpn and no-default-alpn="" for the same.
# Seen: github.com/miekg/dns 1.1.73 (Go) writes the latter, which ldns-read-zone of ldns 1.8.3 and Knot 3.2.6 refuse. Knot reads
# key65280="". NSD 4.6.1 and dnspython 2.9.2 (Python) read both.
# Knot refuses a whole zone that a program in Go wrote, and tools on ldns cannot sign it.
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

	"github.com/miekg/dns"
)

func main() {
	record, _ := dns.NewRR("a 60 IN HTTPS 1 . alpn=h2 no-default-alpn")
	message := make([]byte, 512)
	size, _ := dns.PackRR(record, message, 0, nil, false)
	record, _, err := dns.UnpackRR(message[:size], 0)
	fmt.Println(record, err)
}
GO
go mod tidy 2>/dev/null
written=$(go run . | sed "s|.*HTTPS\t||")
seen 'miekg/dns writes' '1 . alpn="h2" no-default-alpn="" <nil>' "$written"

debian_install knot-dnssecutils libknot13 libdnssec9 libzscanner4 liblmdb0 libbpf1 libxdp1 liburcu8 \
    nsd libevent-2.1-7 libprotobuf-c1 libfstrm0 ldnsutils=1.8.3-1+b1 libldns3=1.8.3-1+b1
pip_install dnspython==2.9.2
# ask TOOL PARAMETERS: what it says about a zone with them
ask() {
    printf '$ORIGIN example.\n$TTL 60\n@ SOA ns.b. a.b. 1 2 3 4 5\n@ NS ns.b.\na HTTPS 1 . %s\n' "$2" >zone
    case $1 in
    knot) root/usr/bin/kzonecheck -v -o example. zone 2>&1 | sed -n 's/.*line 5 (\(.*\))$/\1/p' ;;
    ldns) root/usr/bin/ldns-read-zone zone 2>&1 | sed -n -e 's/.*HTTPS\t//p' -e 's/^Syntax error, //p' ;;
    nsd) root/usr/sbin/nsd-checkzone example. zone 2>/dev/null | sed -n 's/.*is ok/ok/p' ;;
    dnspython) v/bin/python -c '
import dns.zone
print(dns.zone.from_file("zone", "example.").get_rdataset("a", "HTTPS")[0])' ;;
    esac
}
seen 'Knot: no-default-alpn' '' "$(ask knot 'alpn=h2 no-default-alpn')"
seen 'Knot: no-default-alpn=""' 'invalid parameter' "$(ask knot 'alpn=h2 no-default-alpn=""')"
seen 'Knot: key65280=""' '' "$(ask knot 'alpn=h2 key65280=""')"
seen 'ldns: no-default-alpn' '1 . alpn=h2 no-default-alpn' "$(ask ldns 'alpn=h2 no-default-alpn')"
seen 'ldns: no-default-alpn=""' "could not parse the RR's rdata at line 5" "$(ask ldns 'alpn=h2 no-default-alpn=""')"
seen 'NSD: no-default-alpn=""' ok "$(ask nsd 'alpn=h2 no-default-alpn=""')"
seen 'dnspython: no-default-alpn=""' '1 . alpn="h2" no-default-alpn' "$(ask dnspython 'alpn=h2 no-default-alpn=""')"
