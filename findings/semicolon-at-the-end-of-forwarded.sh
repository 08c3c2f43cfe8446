#!/usr/bin/env bash
# Forwarded: for=192.0.2.1;proto=https;
#
# RFC 7239, section 4: an element is `[ forwarded-pair ] *( ";" [ forwarded-pair ] )`. Each pair is optional, so a
# semicolon may end the element, begin it, or follow another one.
# Guess: a parser that was written by this grammar reads both pairs.
# Seen: forwarded-parse 2.2.0 (npm) fails at each of the three. aiohttp 3.14.5 (Python) reads them all.
# A proxy that ends each pair with its semicolon keeps to the grammar. Behind it a program that uses this parser sees an
# error, where it ought to see the address of the client.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install forwarded-parse@2.2.0
js() {
    node -e '
        try { console.log(JSON.stringify(require("forwarded-parse")(process.argv[1]))); }
        catch (error) { console.log(error.constructor.name); }' "$1"
}
pip_install aiohttp==3.14.5
cat >read.py <<'PY'
import json, sys
from aiohttp.test_utils import make_mocked_request
request = make_mocked_request("GET", "/", headers={"Forwarded": sys.argv[1]})
print(json.dumps([dict(element) for element in request.forwarded], separators=(",", ":")))
PY
PAIRS='[{"for":"192.0.2.1","proto":"https"}]'
seen 'forwarded-parse: for=...;proto=https' "$PAIRS" "$(js 'for=192.0.2.1;proto=https')"
for text in 'for=192.0.2.1;proto=https;' ';for=192.0.2.1;proto=https' 'for=192.0.2.1;;proto=https'; do
    seen "forwarded-parse: $text" ParseError "$(js "$text")"
    seen "aiohttp: $text" "$PAIRS" "$(v/bin/python read.py "$text")"
done
