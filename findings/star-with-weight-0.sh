#!/usr/bin/env bash
# Accept-Encoding: br, *;q=0
#
# RFC 9110, section 12.5.3: content without a coding (identity) is acceptable unless the field excludes it by
# identity;q=0, or by *;q=0 without a more specific entry for identity.
# Guess: a library that knows identity;q=0 knows *;q=0, too.
# Seen: @hapi/accept 6.0.3 (npm) adds identity to the codings for `br, *;q=0`, but not for `br, identity;q=0`.
# negotiator 1.1.0 (npm) leaves it out of both.
# A client that insists on a coding, as a check of a server's compression does, gets plain content.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install @hapi/accept@6.0.3 negotiator@1.1.0
cat >choose.js <<'JS'
const [library, field] = process.argv.slice(2);
let codings;
if (library === "hapi") {
    codings = require("@hapi/accept").encodings(field);
} else {
    const Negotiator = require("negotiator");
    codings = new Negotiator({ headers: { "accept-encoding": field } }).encodings();
}
console.log(...codings);
JS
seen '@hapi/accept' 'br identity' "$(node choose.js hapi 'br, *;q=0')"
seen '@hapi/accept: identity;q=0' br "$(node choose.js hapi 'br, identity;q=0')"
seen 'negotiator' br "$(node choose.js negotiator 'br, *;q=0')"
seen 'negotiator: identity;q=0' br "$(node choose.js negotiator 'br, identity;q=0')"
