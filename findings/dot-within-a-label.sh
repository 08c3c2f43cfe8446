#!/usr/bin/env bash
# a.example. 60 IN SOA ns.a.example. first\.last.a.example. 1 2 3 4 5
#
# RFC 1035, section 5.1: `\.` in a text is a dot within a label. Section 3.3.13: the mailbox of a zone is a name whose
# first label is the part before the @, so that of first.last@a.example has a dot in it.
# Guess: a library that turns messages into texts and back writes the escape, and reads it.
# Seen: dns-packet 5.6.1 (npm) gives first.last.a.example, which it writes with a label more. It takes the escape for a
# backslash, and a dot that ends the label. dnspython 2.9.2 (Python) writes and reads the escape.
# Names of services in DNS-SD ("Room 1.2._http._tcp") have such dots, too; what dns-packet reads of them asks for
# another name.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
BYTES=0a66697273742e6c6173740161076578616d706c6500

npm_install dns-packet@5.6.1
js() {
    node -p '
        const { name } = require("dns-packet");
        const [what, value] = process.argv.slice(1);
        what === "read" ? name.decode(Buffer.from(value, "hex")) : name.encode(value).toString("hex")' "$@"
}
seen 'dns-packet reads' first.last.a.example "$(js read $BYTES)"
seen 'dns-packet writes that' 056669727374046c6173740161076578616d706c6500 "$(js write first.last.a.example)"
escaped=$(js write 'first\.last.a.example')
seen 'dns-packet writes with the escape' 0666697273745c046c6173740161076578616d706c6500 "$escaped"

pip_install dnspython==2.9.2
cat >name.py <<'PY'
import dns.name, sys
what, value = sys.argv[1:]
if what == "read":
    print(dns.name.from_wire(bytes.fromhex(value), 0)[0])
else:
    print(dns.name.from_text(value).to_wire().hex())
PY
seen 'dnspython reads' 'first\.last.a.example.' "$(v/bin/python name.py read $BYTES)"
seen 'dnspython writes with the escape' $BYTES "$(v/bin/python name.py write 'first\.last.a.example')"
