#!/usr/bin/env bash
# an answer with a HTTPS 0 b. alpn=h2
#
# RFC 9460, section 2.4.2: the priority 0 is an alias, which should have no parameters; a receiver has to ignore those that
# are there.
# Guess: a library that reads messages gives the alias, with its parameters or without.
# Seen: dnspython 2.9.2 (Python) refuses the whole message, and the line of a zone file, too. dnslib 0.9.26 (Python) and
# github.com/miekg/dns 1.1.73 (Go) give the alias with the parameter.
# A client on dnspython loses all records of the answer.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
ANSWER=000184000000000100000000016100004100010000003c000c000001620000010003026832
export ANSWER

pip_install dnspython==2.9.2 dnslib==0.9.26
python() {
    v/bin/python -c '
import dns.exception, dns.message, os
try:
    print(dns.message.from_wire(bytes.fromhex(os.environ["ANSWER"])).answer[0])
except dns.exception.DNSException as error:
    print(type(error).__name__, error)'
}
lib() {
    v/bin/python -c '
import dnslib, os
print(dnslib.DNSRecord.parse(bytes.fromhex(os.environ["ANSWER"])).rr[0].rdata)'
}
seen dnspython 'FormError parameters in AliasMode' "$(python)"
seen dnslib '0 b. alpn=h2' "$(lib)"

cat >go.mod <<'GO'
module finding
go 1.26
require github.com/miekg/dns v1.1.73
GO
cat >main.go <<'GO'
package main

import (
	"encoding/hex"
	"fmt"
	"os"

	"github.com/miekg/dns"
)

func main() {
	bytes, _ := hex.DecodeString(os.Getenv("ANSWER"))
	var message dns.Msg
	fmt.Println(message.Unpack(bytes), message.Answer)
}
GO
go mod tidy 2>/dev/null
seen 'miekg/dns' '<nil> [a.	60	IN	HTTPS	0 b. alpn="h2"]' "$(go run .)"
