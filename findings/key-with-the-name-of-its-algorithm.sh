#!/usr/bin/env bash
# a DNSKEY 257 3 RSASHA256 AwEAAQ==
#
# RFC 4034, section 2.2: the algorithm of a DNSKEY record in a zone file is a number, or one of the names in appendix A.1 and
# the registry behind it. Sections 3.2 and 5.3 say the same of RRSIG and DS.
# Guess: a library that reads the name in one of the three reads it in all of them.
# Seen: github.com/miekg/dns 1.1.73 (Go) reads it in DS and RRSIG, and refuses it in DNSKEY and CDNSKEY. dnspython 2.9.2
# (Python) reads it in each.
# Keys as other tools print them with names cannot be added to a zone.
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
	record, err := dns.NewRR("a. 60 IN " + os.Args[1])
	if err != nil {
		fmt.Println(err)
		return
	}
	message := make([]byte, 512)
	size, err := dns.PackRR(record, message, 0, nil, false)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%x\n", message[13:size]) // behind the name, type, class, time and length
}
GO
go mod tidy 2>/dev/null
go build -o write .
pip_install dnspython==2.9.2
python() {
    v/bin/python -c '
import dns.rdata, sys
kind, data = sys.argv[1].split(" ", 1)
print(dns.rdata.from_text("IN", kind, data).to_wire().hex())' "$1"
}
seen 'dnspython: DNSKEY' 0101030803010001 "$(python 'DNSKEY 257 3 RSASHA256 AwEAAQ==')"
seen 'dnspython: DS' 00010801aa "$(python "DS 1 RSASHA256 1 $(printf 'aa%.0s' {1..20})" | cut -c1-10)"
seen 'miekg/dns: DS' 00010801aa "$(./write "DS 1 RSASHA256 1 $(printf 'aa%.0s' {1..20})" | cut -c1-10)"
seen 'miekg/dns: RRSIG' 000108 "$(./write 'RRSIG A RSASHA256 1 60 20240301000000 20240201000000 1 a. AAAA' | cut -c1-6)"
seen 'miekg/dns: DNSKEY by number' 0101030803010001 "$(./write 'DNSKEY 257 3 8 AwEAAQ==')"
seen 'miekg/dns: DNSKEY' 'dns: bad DNSKEY Algorithm: "RSASHA256" at line: 1:32' \
    "$(./write 'DNSKEY 257 3 RSASHA256 AwEAAQ==')"
seen 'miekg/dns: CDNSKEY' 'dns: bad CDNSKEY Algorithm: "RSASHA256" at line: 1:33' \
    "$(./write 'CDNSKEY 257 3 RSASHA256 AwEAAQ==')"
