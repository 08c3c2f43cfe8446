#!/usr/bin/env bash
# Priority: u=1, i
#
# RFC 9651, section 3.2: a member of a dictionary without a value is true. RFC 9218, section 4.2, writes `i` so. Section
# 3.1.2: the last of two parameters of one name counts.
# Guess: a parser of structured fields reads the field of which the RFC of priorities makes its examples.
# Seen: sfvparse 0.1.0 (Python) demands an equal sign in dictionaries, although it knows parameters without one, and
# refuses two parameters of one name. http-sf 1.5.0 and http-sfv 0.9.9 (Python) read all of them.
# A server on it refuses the priorities of browsers.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install sfvparse==0.1.0 http-sf==1.5.0 http-sfv==0.9.9
read_with() {
    v/bin/python -c '
import sys
library, kind, field = sys.argv[1:]
try:
    if library == "sfvparse":
        import sfvparse
        found = {"dictionary": sfvparse.parse_dict, "item": sfvparse.parse_item}[kind](field)
    elif library == "http-sf":
        import http_sf
        found = http_sf.parse(field.encode(), tltype=kind)
    else:
        import http_sfv
        found = {"dictionary": http_sfv.Dictionary, "item": http_sfv.Item}[kind]()
        found.parse(field.encode())
    print("read")
except ValueError as error:
    print(f"refused: {error}")' "$@"
}
# row KIND FIELD OF_SFVPARSE
row() {
    seen "http-sf: $2" read "$(read_with http-sf "$1" "$2")"
    seen "http-sfv: $2" read "$(read_with http-sfv "$1" "$2")"
    seen "sfvparse: $2" "$3" "$(read_with sfvparse "$1" "$2")"
}
row dictionary 'u=1, i=?1' read
row dictionary 'u=1, i' "refused: expected '=' after dictionary key 'i' at position 6: b'u=1, i'"
row item 'a;b' read
row item 'a;b=1;b=2' "refused: duplicate parameter: 'b'"
