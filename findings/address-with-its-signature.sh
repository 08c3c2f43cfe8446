#!/usr/bin/env bash
# an answer with an A record and its RRSIG record
#
# RFC 3597, section 3: programs pass over, or pass on, records of types that they do not know, as their length is stated. RFC
# 1035, section 3.3: the texts of a TXT record are bytes, and the preference of an MX record is a number.
# Guess: a library for captures gives the address, and the other record as bytes.
# Seen: dpkt 1.9.8 (Python) refuses the whole message for a type that it does not know, RRSIG, HTTPS or CAA, so that the address
# is lost. It refuses a text that is no UTF-8, and gives (10,) for the preference 10. Scapy 2.8.0 (Python) and
# github.com/google/gopacket 1.1.19 (Go) give the address.
# Names with DNSSEC, and all that a browser asks for HTTPS records, are missing in what it counts.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install dpkt==1.9.8 scapy==2.8.0 dnspython==2.9.2
# message TYPE DATA [TYPE DATA]...: a message with these records of a.example, in hexadecimal
message() {
    v/bin/python -c '
import dns.message, dns.rrset, sys
answer = dns.message.make_response(dns.message.make_query("a.example", sys.argv[1]))
for kind, data in zip(sys.argv[1::2], sys.argv[2::2]):
    answer.answer.append(dns.rrset.from_text("a.example.", 60, "IN", kind, data))
print(answer.to_wire().hex())' "$@"
}
with_dpkt() {
    v/bin/python -c '
import dpkt, sys
try:
    for record in dpkt.dns.DNS(bytes.fromhex(sys.argv[1])).an:
        print(getattr(record, sys.argv[2]))
except (dpkt.UnpackError, UnicodeDecodeError) as error:
    print(type(error).__name__, error)' "$@"
}
with_scapy() {
    v/bin/python -c '
import sys
from scapy.layers.dns import DNS
print(*(record.type for record in DNS(bytes.fromhex(sys.argv[1])).an))' "$1" 2>/dev/null
}
cat >go.mod <<'GO'
module finding
go 1.26
require github.com/google/gopacket v1.1.19
GO
cat >main.go <<'GO'
package main

import (
	"encoding/hex"
	"fmt"
	"os"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
)

func main() {
	message, err := hex.DecodeString(os.Args[1])
	if err != nil {
		panic(err)
	}
	packet := gopacket.NewPacket(message, layers.LayerTypeDNS, gopacket.Default)
	for _, record := range packet.Layer(layers.LayerTypeDNS).(*layers.DNS).Answers {
		fmt.Print(int(record.Type), " ")
	}
}
GO
go mod tidy 2>/dev/null
signature='A 8 2 60 20240301000000 20240201000000 1 example. AAAA'
plain=$(message A 192.0.2.1) signed=$(message A 192.0.2.1 RRSIG "$signature")
seen 'dpkt: the address alone' "b'\xc0\x00\x02\x01'" "$(with_dpkt "$plain" ip)"
seen 'dpkt: with its signature' 'UnpackError RR type 46 is not supported' "$(with_dpkt "$signed" ip)"
seen 'Scapy: with its signature' '1 46' "$(with_scapy "$signed")"
seen 'gopacket: with its signature' '1 46 ' "$(go run . "$signed")"
seen 'dpkt: HTTPS' 'UnpackError RR type 65 is not supported' "$(with_dpkt "$(message HTTPS '1 . alpn=h2')" ip)"
seen 'dpkt: MX' '(10,)' "$(with_dpkt "$(message MX '10 b.')" preference)"
seen 'dpkt: TXT' "['a']" "$(with_dpkt "$(message TXT a)" text)"
seen 'dpkt: TXT, other bytes' UnicodeDecodeError "$(with_dpkt "$(message TXT '"\200"')" text | cut -d' ' -f1)"
