#!/usr/bin/env bash
# a HTTPS 1 . port=8443 alpn=h2
#
# RFC 9460, section 2.1: in a zone file the parameters may stand in any order. Section 2.2: in a message they stand by
# the number of their keys, and a client takes a record in another order for malformed.
# Guess: a library sorts them when it reads the text, or when it writes the message.
# Seen: dnslib 0.9.26 (Python) writes port (3) before alpn (1), as they stood. dnspython 2.9.2 (Python) sorts the same
# text, and refuses the record of dnslib. dnslib itself reads it without a complaint. It also knows no quotes,
# alpn="h2", which the RFC allows.
# The service of such a record is lost to clients that check, and a test with the same library passes.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install dnspython==2.9.2 dnslib==0.9.26
dnslib() {
    v/bin/python -c '
import dnslib, sys
try:
    record = dnslib.RR.fromZone(f"a. 60 IN HTTPS {sys.argv[1]}")[0]
    buffer = dnslib.DNSBuffer()
    record.rdata.pack(buffer)
    print(buffer.data.hex())
except (dnslib.DNSError, ValueError) as error:
    print("error")' "$1"
}
dnspython() {
    v/bin/python -c '
import dns.rdata, sys
print(dns.rdata.from_text("IN", "HTTPS", sys.argv[1]).to_wire().hex())' "$1"
}
read_again() {
    v/bin/python -c '
import dns.exception, dns.rdata, sys
data = bytes.fromhex(sys.argv[1])
try:
    print(dns.rdata.from_wire("IN", "HTTPS", data, 0, len(data)))
except dns.exception.FormError as error:
    print(error)' "$1"
}
sorted=000100000100030268320003000220fb
seen 'dnslib: alpn=h2 port=8443' $sorted "$(dnslib '1 . alpn=h2 port=8443')"
seen 'dnslib: port=8443 alpn=h2' 0001000003000220fb00010003026832 "$(dnslib '1 . port=8443 alpn=h2')"
seen 'dnspython: port=8443 alpn=h2' $sorted "$(dnspython '1 . port=8443 alpn=h2')"
seen 'dnspython, of that of dnslib' 'keys not in strictly increasing order' \
    "$(read_again "$(dnslib '1 . port=8443 alpn=h2')")"
seen 'dnslib: alpn="h2"' error "$(dnslib '1 . alpn="h2"')"
seen 'dnspython: alpn="h2"' 00010000010003026832 "$(dnspython '1 . alpn="h2"')"
