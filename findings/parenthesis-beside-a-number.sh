#!/usr/bin/env bash
# a IN SOA b. c. (1 2 3 4 5), and a IN AAAA ::ffff:192.0.2.1
#
# RFC 1035, section 5.1: parentheses join lines; no rule asks for a blank beside one. RFC 4291, section 2.2: the last four octets of
# an address of IPv6 may be written as those of one of IPv4.
# Guess: a reader of zone files that knows ( 1 2 3 4 5 ) knows (1 2 3 4 5), and each form of an address.
# Seen: dnslib 0.9.26 (Python) takes the parenthesis for a part of the number, and fails, also at one behind the last number. It
# fails at the address. dnspython 2.9.2 (Python) reads all of them.
# Most zone files that people write close the SOA record so.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install dnslib==0.9.26 dnspython==2.9.2
lib() {
    v/bin/python -c '
import dnslib, sys
try:
    print(dnslib.RR.fromZone(sys.argv[1])[0].rdata)
except ValueError as error:
    print(error)' "$1"
}
python() {
    v/bin/python -c '
import dns.zone, sys
zone = dns.zone.from_text(sys.argv[1], "a.", check_origin=False)
print(*(data for _, _, data in zone.iterate_rdatas()))' "$1"
}
failed='invalid literal for int() with base'
seen 'dnslib: ( 1 2 3 4 5 )' 'b. c. 1 2 3 4 5' "$(lib 'a. 60 IN SOA b. c. ( 1 2 3 4 5 )')"
seen 'dnslib: (1 2 3 4 5 )' "$failed 10: '(1'" "$(lib 'a. 60 IN SOA b. c. (1 2 3 4 5 )')"
seen 'dnslib: ( 1 2 3 4 5)' "$failed 10: '5)'" "$(lib 'a. 60 IN SOA b. c. ( 1 2 3 4 5)')"
seen 'dnspython: (1 2 3 4 5)' 'b. c. 1 2 3 4 5' "$(python 'a. 60 IN SOA b. c. (1 2 3 4 5)')"
seen 'dnslib: ::ffff:c000:201' ::ffff:c000:201 "$(lib 'a. 60 IN AAAA ::ffff:c000:201')"
seen 'dnslib: ::ffff:192.0.2.1' "$failed 16: '192.0.2.1'" "$(lib 'a. 60 IN AAAA ::ffff:192.0.2.1')"
seen 'dnspython: ::ffff:192.0.2.1' ::ffff:192.0.2.1 "$(python 'a. 60 IN AAAA ::ffff:192.0.2.1')"
