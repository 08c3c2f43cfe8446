#!/usr/bin/env bash
# Signature-Input: s=("accept";sf), for Accept: text/html;q=1.0
#
# RFC 9421, section 2.1.1: `sf` signs the field as RFC 9651 serializes it. Section 4.1.5 there writes the decimal 1.0 as
# 1.0; 1 is another type. Section 2.1.2 of RFC 9421: `key` signs one member of a dictionary, and `Priority: i` is one.
# Guess: two libraries for message signatures sign the same text, as it is there that they have to agree.
# Seen: http-message-signatures 1.0.6 (npm) signs `text/html;q=1`, as numbers of JavaScript forget the zero, and fails
# at `"priority";key="i"` for `Priority: i`, which it takes for a list, although not for `Priority: u=1, i`.
# http-message-signatures 3.0.0 (Python, no relation) signs `text/html;q=1.0` and `?1`.
# So the two refuse each other for some weights, and a signer fails at the shortest form of a field. A field signed as
# it stands, without parameters, avoids both.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install http-message-signatures@1.0.6 structured-headers@2.1.0
js() {
    node -p '
        const { httpbis } = require("http-message-signatures");
        const [component, name, value] = process.argv.slice(1);
        const message = { method: "GET", url: "https://a.example/", headers: { [name]: value } };
        try { httpbis.formatSignatureBase(httpbis.createSignatureBase({ fields: [component] }, message)); }
        catch (error) { error.message }' "$@"
}
pip_install http-message-signatures==3.0.0 http-sf==1.5.0
python() {
    v/bin/python -c '
import sys
from types import SimpleNamespace
from http_message_signatures import HTTPSignatureComponentResolver
from http_sf.compat import Item

text, name, value = sys.argv[1:]
message = SimpleNamespace(method="GET", url="https://a.example/", headers={name: value})
component = Item()
component.parse(text.encode())
print(f"{text}: {HTTPSignatureComponentResolver(message).resolve(component)}")' "$@"
}
accept='"accept";sf'
seen 'npm: text/html;q=0.5' "$accept: text/html;q=0.5" "$(js "$accept" accept 'text/html;q=0.5')"
seen 'Python: text/html;q=0.5' "$accept: text/html;q=0.5" "$(python "$accept" accept 'text/html;q=0.5')"
seen 'npm: text/html;q=1.0' "$accept: text/html;q=1" "$(js "$accept" accept 'text/html;q=1.0')"
seen 'Python: text/html;q=1.0' "$accept: text/html;q=1.0" "$(python "$accept" accept 'text/html;q=1.0')"
priority='"priority";key="i"'
seen 'npm: u=1, i' "$priority: ?1" "$(js "$priority" priority 'u=1, i')"
seen 'Python: u=1, i' "$priority: ?1" "$(python "$priority" priority 'u=1, i')"
seen 'npm: i' 'Unable to parse header as dictionary' "$(js "$priority" priority i)"
seen 'Python: i' "$priority: ?1" "$(python "$priority" priority i)"
