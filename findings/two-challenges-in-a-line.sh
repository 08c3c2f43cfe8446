#!/usr/bin/env bash
# WWW-Authenticate: Basic realm="a", Digest realm="b", nonce="n"
#
# RFC 9110, section 11.6.1: a field may carry several challenges, and the RFC warns that commas also stand within each;
# its example has two in one line.
# Guess: a library whose only task is this field gives two challenges, or says that it reads one.
# Seen: auth-header 1.0.0 (npm) gives one, Basic, with both realms and the nonce, and with `Digest` for its token.
# www-authenticate 0.6.3 (npm) gives one, with a parameter that is called `Digest realm`. For `Negotiate, Basic
# realm="x"`, the first fails and the second forgets Negotiate. www-authenticate 0.9.2 (Python) reads two in both.
# A proxy that joins lines of this field, as it may, makes such clients miss the scheme that they know.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install auth-header@1.0.0 www-authenticate@0.6.3
cat >read.js <<'JS'
const [library, field] = process.argv.slice(2);
let found;
if (library === "auth-header") {
    try {
        const { scheme, params, token } = require("auth-header").parse(field);
        found = [scheme, token, params];
    } catch (error) {
        found = error.constructor.name;
    }
} else {
    const { scheme, parms } = new (require("www-authenticate").parsers.WWW_Authenticate)(field);
    found = [scheme, parms];
}
console.log(JSON.stringify(found));
JS
TWO='Basic realm="a", Digest realm="b", nonce="n"'
seen 'auth-header' '["Basic","Digest",{"realm":["a","b"],"nonce":"n"}]' "$(node read.js auth-header "$TWO")"
seen 'www-authenticate (npm)' '["Basic",{"realm":"a","Digest realm":"b","nonce":"n"}]' \
    "$(node read.js www-authenticate "$TWO")"
BARE='Negotiate, Basic realm="x"'
seen 'auth-header: Negotiate, ...' '"TypeError"' "$(node read.js auth-header "$BARE")"
seen 'www-authenticate (npm): Negotiate, ...' '["Basic",{"realm":"x"}]' "$(node read.js www-authenticate "$BARE")"

pip_install www-authenticate==0.9.2
python() {
    v/bin/python -c '
import json, sys, www_authenticate
print(json.dumps(www_authenticate.parse(sys.argv[1])))' "$1"
}
seen 'www-authenticate (Python)' '{"basic": {"realm": "a"}, "digest": {"realm": "b", "nonce": "n"}}' "$(python "$TWO")"
seen 'www-authenticate (Python): Negotiate, ...' '{"negotiate": null, "basic": {"realm": "x"}}' "$(python "$BARE")"
