#!/usr/bin/env bash
# w IN TXT "\065", and x IN CNAME @
#
# RFC 1035, section 5.1: \DDD is the octet with the decimal number DDD, so \065 is A; a free-standing @ is the origin.
# Guess: each library for DNS that reads lines of zone files knows both.
# Seen: dnslib 0.9.26 (Python) reads the number as octal: \065 is 5, and \195 is an error. It takes @ for a host name of
# that letter. dnspython 2.9.2 (Python) reads both as meant, and writes such escapes itself for letters beyond ASCII.
# A small server of names for tests, as this library makes it, answers other texts and names than the one that it stands
# for; no message says so, unless a digit is 8 or 9.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install dnslib==0.9.26 dnspython==2.9.2
cat >read.py <<'PY'
import sys
import dns.name, dns.rdata, dnslib

library, kind, text = sys.argv[1:]
if library == "dnslib":
    try:
        data = dnslib.RR.fromZone("$ORIGIN a.example.\nw 60 IN %s %s\n" % (kind, text))[0].rdata
        print(data.data[0].decode() if kind == "TXT" else data)
    except ValueError as error:
        print(type(error).__name__)
else:
    data = dns.rdata.from_text("IN", kind, text, origin=dns.name.from_text("a.example."), relativize=False)
    print(data.strings[0].decode() if kind == "TXT" else data)
PY
written=$(v/bin/python -c '
import dns.rdata
print(dns.rdata.from_wire("IN", "TXT", b"\x02\xc3\xbc", 0, 3).to_text())')
seen 'dnspython writes the letter u with dots' '"\195\188"' "$written"
seen 'dnspython: that' ü "$(v/bin/python read.py dnspython TXT "$written")"
seen 'dnslib: that' ValueError "$(v/bin/python read.py dnslib TXT "$written")"
seen 'dnspython: \065' A "$(v/bin/python read.py dnspython TXT '"\065"')"
seen 'dnslib: \065' 5 "$(v/bin/python read.py dnslib TXT '"\065"')"
seen 'dnspython: CNAME @' a.example. "$(v/bin/python read.py dnspython CNAME @)"
seen 'dnslib: CNAME @' @.a.example. "$(v/bin/python read.py dnslib CNAME @)"
