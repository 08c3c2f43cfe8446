#!/usr/bin/env bash
# an answer with the code BADVERS
#
# RFC 6891, section 6.1.3: a code has 12 bits, the upper eight in the OPT record and the lower four in the header, so
# that BADVERS, 16, has none of the four. Section 9 lists it among the codes of DNS.
# Guess: a library that reads OPT gives one code.
# Seen: dns-packet 5.6.1 (npm) gives NOERROR, and a number 1 in the OPT record.
# dnspython 2.9.2 (Python) gives BADVERS.
# A program that looks at the code takes a refusal of its version, or of its cookie, for an empty answer.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
MESSAGE=0001840000000000000000010000290000010000000000 # one record, OPT, whose upper bits are 01
export MESSAGE

npm_install dns-packet@5.6.1
pip_install dnspython==2.9.2
seen 'dns-packet: the code' NOERROR "$(node -p '
    require("dns-packet").decode(Buffer.from(process.env.MESSAGE, "hex")).rcode')"
seen 'dns-packet: of the OPT record' 1 "$(node -p '
    require("dns-packet").decode(Buffer.from(process.env.MESSAGE, "hex")).additionals[0].extendedRcode')"
seen 'dnspython: the code' BADVERS "$(v/bin/python -c '
import dns.message, dns.rcode, os
print(dns.rcode.to_text(dns.message.from_wire(bytes.fromhex(os.environ["MESSAGE"])).rcode()))')"
