#!/usr/bin/env bash
# a IPSECKEY 10 1 0 192.0.2.38
#
# RFC 4025, section 2.4: algorithm 0 says that there is no key; section 3.1: a record may end before the key, which is then of
# no bytes. Such a record names a gateway alone.
# Guess: what knows IPSECKEY reads that.
# Seen: BIND 9.18.49 refuses it, as a text and as 7 bytes in the form of RFC 3597. ldns 1.8.3 refuses the text, and cannot write
# what it has read as bytes. dnspython 2.9.2 (Python) writes it, and does not read what it wrote. NSD 4.6.1, Knot 3.2.6 and
# github.com/miekg/dns 1.1.73 (Go) read it.
# BIND loads nothing of a zone with such a record, which NSD serves.
# shellcheck disable=SC2016 # words of zone files
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

debian_install knot-dnssecutils=3.2.6-1 libknot13 libdnssec9 libzscanner4 liblmdb0 libbpf1 libxdp1 liburcu8 \
    nsd=4.6.1-1 libevent-2.1-7 libprotobuf-c1 libfstrm0 ldnsutils=1.8.3-1+b1 libldns3 \
    bind9-utils=1:9.18.49-1~deb12u3 bind9-libs libmaxminddb0 libuv1 libxml2 libicu72 libjson-c5 libnghttp2-14 libjemalloc2
pip_install dnspython==2.9.2
# ask TOOL DATA: whether it reads a zone with this record
ask() {
    printf '$TTL 60\n@ SOA ns.b. a.b. 1 2 3 4 5\n@ NS ns.b.\na IPSECKEY %s\n' "$2" >zone
    case $1 in
    knot) root/usr/bin/kzonecheck -o example. zone &>/dev/null && echo read || echo refused ;;
    nsd) root/usr/sbin/nsd-checkzone example. zone &>/dev/null && echo read || echo refused ;;
    bind) root/usr/bin/named-checkzone -q -k ignore -i none example. zone && echo read || echo refused ;;
    ldns)
        root/usr/bin/ldns-read-zone zone &>output || true
        sed -n 's/.*Unable/unable/p; s/.*IPSECKEY.*/read/p; s/^Syntax.*/refused/p' output
        ;;
    dnspython)
        v/bin/python -c '
import dns.exception, dns.zone
try:
    print("read", dns.zone.from_file("zone", "example.").get_rdataset("a", "IPSECKEY")[0].to_text().strip())
except dns.exception.DNSException:
    print("refused")'
        ;;
    esac
}
TEXT='10 1 0 192.0.2.38' BYTES='\# 7 0a0100c0000226' KEY='10 1 2 192.0.2.38 AQID'
for tool in knot nsd bind ldns; do
    seen "$tool: with a key" read "$(ask $tool "$KEY")"
done
for tool in knot nsd; do
    seen "$tool: text" read "$(ask $tool "$TEXT")"
done
seen 'BIND: text' refused "$(ask bind "$TEXT")"
seen 'BIND: bytes' refused "$(ask bind "$BYTES")"
seen 'ldns: text' refused "$(ask ldns "$TEXT")"
seen 'ldns: bytes' 'unable to convert rr to string' "$(ask ldns "$BYTES")"
seen 'dnspython: text' refused "$(ask dnspython "$TEXT")"
seen 'dnspython: bytes' "read $TEXT" "$(ask dnspython "$BYTES")"

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
	_, err := dns.NewRR("a. 60 IN IPSECKEY 10 1 0 192.0.2.38")
	fmt.Println(err)
}
GO
go mod tidy 2>/dev/null
seen 'miekg/dns: text' '<nil>' "$(go run .)"
