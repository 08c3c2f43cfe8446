#!/usr/bin/env bash
# dn: cn=a
# control: 1.2.840.113556.1.4.805 true: x
# changetype: delete
#
# RFC 2849: a change may have controls with values, as its example 7 has; an attribute may have no value, as "description:"; a comment may
# go on in the next line behind a blank; "moddn" is the same as "modrdn". A value of two colons may have any bytes.
# Guess: libraries for LDIF read a deletion, and the rest.
# Seen: ldif 0.5.1 (npm) reads an entry with the attributes "control" and "changetype", and no change. It fails at an attribute without
# a value, and at a comment that goes on, loses the new name behind "moddn", and makes U+FFFD of the bytes of a picture. ldif 4.3.0
# (Python), which gives the lines of an entry and of a change alike, reads all of them.
# A program that applies changes adds an entry in place of the deletion.
# shellcheck disable=SC2016 # templates of JavaScript
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install ldif@0.5.1
pip_install ldif==4.3.0
in_js() {
    node -e '
        try {
            const entry = require("ldif").parse(process.argv[1]).entries[0].toObject({});
            console.log(entry.type ?? "entry", JSON.stringify(entry.attributes ?? entry.changes));
        } catch {
            console.log("error");
        }' "$(printf '%b' "$1")"$'\n'
}
in_python() {
    v/bin/python -c '
import io, ldif, sys
name, lines = next(ldif.LDIFParser(io.BytesIO(sys.argv[1].encode())).parse())
print(dict(lines))' "$(printf '%b' "$1")"$'\n'
}
# each LINES PYTHON JAVASCRIPT
each() {
    seen "ldif of Python: $1" "$2" "$(in_python "$1")"
    seen '  ldif of npm' "$3" "$(in_js "$1")"
}
CONTROL='1.2.840.113556.1.4.805 true: x'
each 'dn: cn=a\ncn: a' "{'cn': ['a']}" 'entry {"cn":"a"}'
each 'dn: cn=a\nchangetype: delete' "{'changetype': ['delete']}" 'delete []'
each "dn: cn=a\ncontrol: $CONTROL\nchangetype: delete" "{'control': ['$CONTROL'], 'changetype': ['delete']}" \
    "entry {\"control\":\"$CONTROL\",\"changetype\":\"delete\"}"
each 'dn: cn=a\ndescription:' "{'description': ['']}" error
each '# b\n c\ndn: cn=a\ncn: a' "{'cn': ['a']}" error
for kind in modrdn moddn; do
    found='modrdn {"newrdn":"cn=b","deleteoldrdn":"0","newsuperior":null}'
    [[ $kind == modrdn ]] || found='moddn []'
    each "dn: cn=a\nchangetype: $kind\nnewrdn: cn=b\ndeleteoldrdn: 0" \
        "{'changetype': ['$kind'], 'newrdn': ['cn=b'], 'deleteoldrdn': ['0']}" "$found"
done
each 'dn: cn=a\njpegPhoto:: /9g=' "{'jpegPhoto': [b'\xff\xd8']}" $'entry {"jpegPhoto":"\ufffd\ufffd"}'
