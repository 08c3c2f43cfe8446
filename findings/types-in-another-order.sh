#!/usr/bin/env bash
# a NSEC b. MX A
#
# RFC 4034, section 4.2: the types of an NSEC record stand in a zone file as a list of their names, in no order that it says.
# In messages they are bits, by section 4.1.2, so that they have one order there.
# Guess: a library sorts them when it writes the bits, or refuses the line.
# Seen: github.com/miekg/dns 1.1.73 (Go) reads the line, keeps the order, and fails when it writes the message: "nsec bits out
# of order". For CSYNC it sorts the types below 256. dnspython 2.9.2 (Python) sorts all of them.
# A server loads such a zone without a word, and has no answer for its names.
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
failed='dns: nsec bits out of order'
seen 'dnspython: NSEC' 01620000024001 "$(python 'NSEC b. MX A')"
seen 'miekg/dns: NSEC, in order' 01620000024001 "$(./write 'NSEC b. A MX')"
seen 'miekg/dns: NSEC' "$failed" "$(./write 'NSEC b. MX A')"
seen 'miekg/dns: CSYNC' 000000420003000160 "$(./write 'CSYNC 66 3 NS A')"
seen 'miekg/dns: CSYNC with TYPE300' "$failed" "$(./write 'CSYNC 66 3 TYPE300 A')"
