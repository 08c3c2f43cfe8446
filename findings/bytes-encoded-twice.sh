#!/usr/bin/env bash
# Content-Digest: sha-256=:aGk=:
#
# RFC 9651, section 4.2.7: the value of a byte sequence is what base64 decodes to. Section 4.1.5: a decimal always has a
# digit behind the point, and section 4.1.1.2: no blank stands before the key of a parameter.
# Guess: a parser gives the two bytes `hi`, and its serializer writes the field as it was.
# Seen: sfvparse 0.1.0 (Python) gives the text aGk=, as bytes, and its serializer encodes it once more. It writes 1.0 as 1,
# which is an integer, and `a;b` with a blank, which parsers allow. http-sf 1.5.0 (Python) is as guessed.
# A digest never matches, and a proxy that writes the field anew breaks it for all others.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install sfvparse==0.1.0 http-sf==1.5.0
read_with() {
    v/bin/python -c '
import sys
library, field = sys.argv[1:]
if library == "sfvparse":
    import sfvparse
    item = sfvparse.parse_item(field)
    print(item["value"], sfvparse.serialize_item(item).decode())
else:
    import http_sf
    item = http_sf.parse(field.encode(), tltype="item")
    print(item[0], http_sf.ser(item))' "$@"
}
seen 'http-sf: bytes' "b'hi' :aGk=:" "$(read_with http-sf :aGk=:)"
seen 'sfvparse: bytes' "b'aGk=' :YUdrPQ==:" "$(read_with sfvparse :aGk=:)"
seen 'http-sf: decimal' '1.0 1.0' "$(read_with http-sf 1.0)"
seen 'sfvparse: decimal' '1.0 1' "$(read_with sfvparse 1.0)"
seen 'http-sf: parameter' 'a a;b' "$(read_with http-sf 'a;b')"
seen 'sfvparse: parameter' 'a a; b' "$(read_with sfvparse 'a;b')"
