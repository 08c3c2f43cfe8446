#!/usr/bin/env bash
# a._http._tcp.local. IN TXT ""
#
# RFC 6763, section 6.1: a service without attributes has a TXT record of one empty string, the byte 00. Section 6.4: a
# string that begins with = is ignored; the case of a key means nothing, and of a key that comes again the first counts.
# Guess: a library for DNS-SD gives no attributes.
# Seen: zeroconf 0.154.0 (Python) gives one attribute, whose key is empty and whose value is none, for the usual record
# of a service without attributes; for `=x` one with an empty key, too; and two, for A=1 and a=2. Of a=1 and a=2 it
# keeps the first. dns-txt 2.0.2 (npm) keeps to the RFC.
# A program that shows what it found shows a nameless attribute, and has to compare keys itself.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install zeroconf==0.154.0
python() {
    v/bin/python -c '
import sys
from zeroconf import ServiceInfo
text = bytes.fromhex(sys.argv[1])
print(ServiceInfo("_http._tcp.local.", "a._http._tcp.local.", properties=text).properties)' "$1"
}
npm_install dns-txt@2.0.2
js() {
    node -p 'JSON.stringify(require("dns-txt")().decode(Buffer.from(process.argv[1], "hex")))' "$1"
}
seen 'zeroconf: nothing' "{b'': None}" "$(python 00)"
seen 'dns-txt: nothing' '{}' "$(js 00)"
seen 'zeroconf: =x' "{b'': b'x'}" "$(python 023d78)"
seen 'dns-txt: =x' '{}' "$(js 023d78)"
seen 'zeroconf: A=1 a=2' "{b'A': b'1', b'a': b'2'}" "$(python 03413d3103613d32)"
seen 'dns-txt: A=1 a=2' '{"a":"1"}' "$(js 03413d3103613d32)"
seen 'zeroconf: a=1 a=2' "{b'a': b'1'}" "$(python 03613d3103613d32)"
seen 'dns-txt: a=1 a=2' '{"a":"1"}' "$(js 03613d3103613d32)"
