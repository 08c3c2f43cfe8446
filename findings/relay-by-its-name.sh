#!/usr/bin/env bash
# a AMTRELAY 10 1 3 relay.b.
#
# RFC 8777, section 4.2.3: a relay of AMT is an address, or a name with the type 3; section 4.3.1 has such a line among its
# examples.
# Guess: a library that knows the type AMTRELAY writes the name, as it writes the addresses.
# Seen: github.com/miekg/dns 1.1.73 (Go) reads the line, and leaves the name out of the message, without an error. It
# writes the name of a gateway in IPSECKEY, whose form is the same. dnspython 2.9.2 (Python) writes both.
# Receivers of such a message find a record that is too short, which spoils the whole message.
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
seen 'dnspython: address' 0a01c0000201 "$(python 'AMTRELAY 10 0 1 192.0.2.1')"
seen 'dnspython: name' 0a830572656c6179016200 "$(python 'AMTRELAY 10 1 3 relay.b.')"
seen 'miekg/dns: address' 0a01c0000201 "$(./write 'AMTRELAY 10 0 1 192.0.2.1')"
seen 'miekg/dns: name' 0a83 "$(./write 'AMTRELAY 10 1 3 relay.b.')"
seen 'dnspython: IPSECKEY' 0a0302016200000000 "$(python 'IPSECKEY 10 3 2 b. AAAA')"
seen 'miekg/dns: IPSECKEY' 0a0302016200000000 "$(./write 'IPSECKEY 10 3 2 b. AAAA')"
