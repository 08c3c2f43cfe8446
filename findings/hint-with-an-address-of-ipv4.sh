#!/usr/bin/env bash
# a HTTPS 1 . ipv6hint=::ffff:192.0.2.1
#
# RFC 9460, section 7.3: the hints are addresses of IPv6 in the form of RFC 5952, whose section 5 has ::ffff:192.0.2.1 for an
# address of IPv4 within one of IPv6.
# Guess: a library that reads this address in an AAAA record reads it in a hint.
# Seen: github.com/miekg/dns 1.1.73 (Go) refuses it in a hint, with an empty reason, in dotted and in hexadecimal form, and
# reads both in an AAAA record. dnspython 2.9.2 (Python) reads them in both.
# Names of networks with a translator have such addresses.
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
mapped=00000000000000000000ffffc0000201
seen 'dnspython: AAAA' $mapped "$(python 'AAAA ::ffff:192.0.2.1')"
seen 'dnspython: hint' 00010000060010$mapped "$(python 'HTTPS 1 . ipv6hint=::ffff:192.0.2.1')"
seen 'miekg/dns: AAAA' $mapped "$(./write 'AAAA ::ffff:192.0.2.1')"
seen 'miekg/dns: hint, 2001:db8::1' 0001000006001020010db8000000000000000000000001 \
    "$(./write 'HTTPS 1 . ipv6hint=2001:db8::1')"
seen 'miekg/dns: hint' 'dns: : "ipv6hint=::ffff:192.0.2.1" at line: 1:44' \
    "$(./write 'HTTPS 1 . ipv6hint=::ffff:192.0.2.1')"
seen 'miekg/dns: hint, hexadecimal' 'dns: : "ipv6hint=::ffff:c000:201" at line: 1:43' \
    "$(./write 'HTTPS 1 . ipv6hint=::ffff:c000:201')"
