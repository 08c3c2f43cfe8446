#!/usr/bin/env bash
# h HTTPS 1 . alpn=h2,h3, in a zone file
#
# RFC 9460, section 2.1: the data of HTTPS are a priority, a name and parameters. RFC 7553, section 4.4: those of URI are two
# numbers and an address. RFC 1035, section 3.3.14: those of TXT are one text or more.
# Guess: a library gives the data of a type that it does not know as one text, or refuses the record.
# Seen: zonefile-parser 0.1.20 (Python) gives the first word: 1 for the HTTPS record, 10 for a URI record, and the first text
# of several. It reads MX and CAA as meant. dnspython 2.9.2 (Python) gives all of it.
# The key of DKIM, which takes several texts, is cut, and so is the way to HTTP/3.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install zonefile-parser==0.1.20 dnspython==2.9.2
HEAD=$'$ORIGIN a.example.\n$TTL 60\n@ IN SOA ns hostmaster ( 1 2 3 4 5 )\n@ IN NS ns\n'
read_with() {
    v/bin/python -c '
import sys
library, kind, text = sys.argv[1:]
if library == "zonefile-parser":
    import zonefile_parser
    print(*zonefile_parser.parse(text)[-1].rdata.values())
else:
    import dns.zone
    ((_, found),) = dns.zone.from_text(text).iterate_rdatasets(kind)
    print(*(data.to_text() for data in found))' "$1" "$2" "$HEAD$3"$'\n'
}
# row TYPE DATA OF_DNSPYTHON OF_ZONEFILE_PARSER
row() {
    seen "dnspython: $1" "$3" "$(read_with dnspython "$1" "a IN $1 $2")"
    seen "zonefile-parser: $1" "$4" "$(read_with zonefile-parser "$1" "a IN $1 $2")"
}
row MX '10 mail' '10 mail' '10 mail'
row CAA '0 issue "ca.example"' '0 issue "ca.example"' '0 issue ca.example'
row HTTPS '1 . alpn=h2,h3' '1 . alpn="h2,h3"' 1
row URI '10 1 "https://a.example/"' '10 1 "https://a.example/"' 10
row TXT '"b" "c"' '"b" "c"' b
