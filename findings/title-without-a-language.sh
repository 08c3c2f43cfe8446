#!/usr/bin/env bash
# Link: </a>; rel=next; title*=UTF-8''%C3%A4
#
# RFC 8187, section 3.2.1: the language between the two quotes may be left out. RFC 8288, section 3.4.1, has title* in this
# form.
# Guess: a parser of RFC 8288 that decodes the form with a language decodes the one without.
# Seen: httplink 0.2.0 (Python) raises ValueError for it, so that all links of the field are lost. With a language
# it reads them.
# A server that names no language loses its links at such clients; a title in ASCII needs no title*.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install httplink==0.2.0
links() {
    v/bin/python -c '
import sys
from httplink import parse_link_header
try:
    print(*(link.target for link in parse_link_header(sys.argv[1]).links))
except ValueError as error:
    print(f"refused: {error}")' "$1"
}
seen 'a language' '/a /b' "$(links "</a>; rel=next; title*=UTF-8'de'%C3%A4, </b>; rel=prev")"
seen 'no language' "refused: Bad extended value: \"UTF-8''%C3%A4\"" \
    "$(links "</a>; rel=next; title*=UTF-8''%C3%A4, </b>; rel=prev")"
