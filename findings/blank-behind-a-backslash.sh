#!/usr/bin/env bash
# a TXT a\ b, and a CNAME a\ b
#
# RFC 1035, section 5.1: a backslash before any letter that is no digit takes its meaning away; a blank behind one does not
# end the word.
# Guess: a reader of zone files gives one text, and one label, of three octets.
# Seen: Net::DNS 1.36 (Perl) gives two texts, `a\` and `b`, and the label `a\` of two octets, and drops the rest, without an
# error. dnslib 0.9.26 (Python) does the same. dnspython 2.9.2 (Python) gives one of three octets. Net::DNS
# reads the form with the number, a\032b.
# github.com/miekg/dns 1.1.73 (Go) writes names of services in DNS-SD so, `Room\ 1`.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

debian_install libnet-dns-perl=1.36-1+deb12u1
pip_install dnspython==2.9.2 dnslib==0.9.26
cat >read.pl <<'PL'
use Net::DNS;
print unpack("H*", Net::DNS::RR->new("x. 60 IN $ARGV[0]")->rdata), "\n";
PL
cat >read.py <<'PY'
import sys
what, line = sys.argv[1:]
if what == "dnspython":
    import dns.rdata
    print(dns.rdata.from_text("IN", *line.split(" ", 1)).to_wire().hex())
else:
    import dnslib
    buffer = dnslib.DNSBuffer()
    dnslib.RR.fromZone(f"x. 60 IN {line}")[0].rdata.pack(buffer)
    print(bytes(buffer.data).hex())
PY
perl() {
    PERL5LIB=root/usr/share/perl5 command perl read.pl "$1"
}
python() {
    v/bin/python read.py "$@"
}
seen 'dnspython: TXT' 03612062 "$(python dnspython 'TXT a\ b')"
seen 'Net::DNS: TXT' 02615c0162 "$(perl 'TXT a\ b')"
seen 'dnslib: TXT' 02615c0162 "$(python dnslib 'TXT a\ b')"
seen 'Net::DNS: TXT, with the number' 03612062 "$(perl 'TXT a\032b')"
seen 'dnspython: CNAME' 0361206200 "$(python dnspython 'CNAME a\ b.')"
seen 'Net::DNS: CNAME' 02615c00 "$(perl 'CNAME a\ b.')"

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
	name, _, err := dns.UnpackDomainName([]byte("\x06Room 1\x00"), 0)
	fmt.Println(name, err)
}
GO
go mod tidy 2>/dev/null
seen 'miekg/dns writes' 'Room\ 1. <nil>' "$(go run .)"
