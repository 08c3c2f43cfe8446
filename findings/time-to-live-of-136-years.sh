#!/usr/bin/env bash
# a.example. IN A 192.0.2.1, with the time to live ff ff ff ff
#
# RFC 2181, section 8: a time to live has 31 bits; a value with the highest bit set ought to be treated as 0 by those
# who receive it. RFC 8767, section 4, later allows to take it for a large one, and to cap it at days or weeks.
# Guess: libraries that read messages do the one or the other.
# Seen: dnspython 2.9.2 (Python) gives 0. dns-packet 5.6.1 (npm), dnslib 0.9.26 and Twisted 26.10.0 (Python) give
# 4294967295 as it stands, which is 136 years, and more than a number of 32 bits with a sign can hold.
# A cache above one of the three has to apply the rule itself.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
MESSAGE=0001840000000001000000000161076578616d706c650000010001ffffffff0004c0000201
export MESSAGE

pip_install dnspython==2.9.2 dnslib==0.9.26 twisted==26.10.0
python() {
    v/bin/python -c "
import os
message = bytes.fromhex(os.environ['MESSAGE'])
$1"
}
npm_install dns-packet@5.6.1
js=$(node -p 'require("dns-packet").decode(Buffer.from(process.env.MESSAGE, "hex")).answers[0].ttl')
seen dnspython 0 "$(python 'import dns.message; print(dns.message.from_wire(message).answer[0].ttl)')"
seen dns-packet 4294967295 "$js"
seen dnslib 4294967295 "$(python 'import dnslib; print(dnslib.DNSRecord.parse(message).rr[0].ttl)')"
seen Twisted 4294967295 "$(python 'from twisted.names import dns
read = dns.Message()
read.fromStr(message)
print(read.answers[0].ttl)')"
