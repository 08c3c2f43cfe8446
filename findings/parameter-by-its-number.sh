#!/usr/bin/env bash
# a HTTPS 1 . key7=/q{?dns}
#
# RFC 9460, section 2.1: a program that does not know a parameter writes key and its number, and who reads this form takes the
# value as bytes. RFC 9461, section 5, gave 7 the name dohpath later, and 1 is alpn.
# Guess: a library that learns the name of a parameter goes on reading the form that older programs write.
# Seen: github.com/miekg/dns 1.1.73 (Go) refuses key7 and key1, and reads key65280. dnspython 2.9.2 (Python) reads all of
# them. ldns-read-zone of ldns 1.8.3 writes key1=\002h2 as alpn=\002h2, which is another list.
# A zone that an older tool wrote is refused after an update of the library.
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
seen 'dnspython: dohpath' 000100000700082f717b3f646e737d "$(python 'HTTPS 1 . dohpath=/q{?dns}')"
seen 'dnspython: key7' 000100000700082f717b3f646e737d "$(python 'HTTPS 1 . key7=/q{?dns}')"
seen 'dnspython: key1' 00010000010003026832 "$(python 'HTTPS 1 . key1=\002h2')"
seen 'miekg/dns: dohpath' 000100000700082f717b3f646e737d "$(./write 'HTTPS 1 . dohpath=/q{?dns}')"
seen 'miekg/dns: key65280' 000100ff000002612f "$(./write 'HTTPS 1 . key65280=a/')"
seen 'miekg/dns: key7' 'dns: bad SVCB key: "key7=/q{?dns}" at line: 1:32' "$(./write 'HTTPS 1 . key7=/q{?dns}')"
seen 'miekg/dns: key1' 'dns: bad SVCB key: "key1=\\002h2" at line: 1:30' "$(./write 'HTTPS 1 . key1=\002h2')"

debian_install ldnsutils=1.8.3-1+b1 libldns3=1.8.3-1+b1
printf '%s\n' 'a. 60 IN HTTPS 1 . key1=\002h2' >zone
seen 'ldns: key1' '1 . alpn=\002h2' "$(root/usr/bin/ldns-read-zone zone | cut -f5)"
seen 'dnspython, of that' 0001000001000403026832... "$(python 'HTTPS 1 . alpn=\002h2' | cut -c1-22)..."
