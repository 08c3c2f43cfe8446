#!/usr/bin/env bash
# Prefer: x="a\"b", wait=10
#
# RFC 7240, section 2: a preference may have a value in quotes, where RFC 9110, section 5.6.4, allows an escaped quote.
# Guess: a parser of this field, which reads commas and semicolons within quotes, reads the quote or skips the preference.
# Seen: parse-prefer-header 1.0.0 (npm) drops this preference and all behind it, without an
# error.
# A client that adds a comment to its request does not get what it prefers.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install parse-prefer-header@1.0.0
parse() {
    node -p 'JSON.stringify(require("parse-prefer-header")(process.argv[1]))' "$1"
}
seen 'wait=10, x="a, b; c"' '{"wait":"10","x":"a, b; c"}' "$(parse 'wait=10, x="a, b; c"')"
seen 'wait=10, x="a\"b"' '{"wait":"10"}' "$(parse 'wait=10, x="a\"b"')"
seen 'x="a\"b", wait=10' '{}' "$(parse 'x="a\"b", wait=10')"
