#!/usr/bin/env bash
# Alt-Svc: h3="[2001:db8::1]:443"
#
# RFC 7838, section 3: the host of an alternative is that of an address, so that one of IPv6 stands in brackets; a protocol
# may be any token.
# Guess: a client for HTTP/3 finds the alternative, or has a reason not to use it.
# Seen: urllib3-future 2.25.904 (Python), which niquests uses, finds none: brackets are not among the letters that it takes
# for a host. It asks for h2c of addresses without TLS, and its reading finds no name of a protocol with a letter behind
# the number. altsvc 0.2.0 (Python) gives both.
# Such a client stays with HTTP/2, without a word.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install urllib3-future==2.25.904 altsvc==0.2.0
parse() {
    v/bin/python -c '
import sys
import altsvc
from urllib3_future.util import parse_alt_svc
if sys.argv[1] == "altsvc":
    print(*(f"{one.protocol} {one.authority}" for one in altsvc.parse(sys.argv[2])))
else:
    print(*(" ".join(one) for one in parse_alt_svc(sys.argv[2])))' "$@"
}
seen 'urllib3-future: :443' 'h3 :443' "$(parse urllib3 'h3=":443"')"
seen 'urllib3-future: 192.0.2.1' 'h3 192.0.2.1:443' "$(parse urllib3 'h3="192.0.2.1:443"')"
seen 'urllib3-future: IPv6' '' "$(parse urllib3 'h3="[2001:db8::1]:443"')"
seen 'altsvc: IPv6' 'h3 [2001:db8::1]:443' "$(parse altsvc 'h3="[2001:db8::1]:443"')"
seen 'urllib3-future: h2c' '' "$(parse urllib3 'h2c=":80"')"
seen 'altsvc: h2c' 'h2c :80' "$(parse altsvc 'h2c=":80"')"
