#!/usr/bin/env bash
# Cache-Control: public, max-age=60,
#
# RFC 9110, section 5.6.1.2: a recipient has to parse and ignore a reasonable number of empty list elements; a program
# that joins parts with commas leaves some.
# Guess: parsers of lists skip the empty element.
# Seen: parse-cache-control 1.0.1 (npm) gives null for the whole field. www-authenticate 0.9.2 (Python) takes the second
# comma of `Bearer realm="a",, error="b"` for the name of another scheme, and www-authenticate 0.6.3 (npm) reports an
# error. auth-header 1.0.0 (npm) and @tusbar/cache-control 3.0.1 (npm) skip it.
# A proxy should leave empty elements out of the lists that it changes: a client that uses the first library keeps
# nothing that comes with one.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install parse-cache-control@1.0.1 @tusbar/cache-control@3.0.1 www-authenticate@0.6.3 auth-header@1.0.0
parse() {
    node -p 'JSON.stringify(require("parse-cache-control")(process.argv[1]))' "$1"
}
tusbar() {
    node -p 'require("@tusbar/cache-control").parse(process.argv[1]).maxAge' "$1"
}
seen 'parse-cache-control: public, max-age=60' '{"public":true,"max-age":60}' "$(parse 'public, max-age=60')"
seen 'parse-cache-control: public, max-age=60,' null "$(parse 'public, max-age=60,')"
seen 'parse-cache-control: public,, max-age=60' null "$(parse 'public,, max-age=60')"
seen '@tusbar/cache-control: public,, max-age=60,' 60 "$(tusbar 'public,, max-age=60,')"

CHALLENGE='Bearer realm="a",, error="b"'
seen 'auth-header' '{"realm":"a","error":"b"}' \
    "$(node -p 'JSON.stringify(require("auth-header").parse(process.argv[1]).params)' "$CHALLENGE")"
seen 'www-authenticate (npm)' 'Equal sign was expected after ,' \
    "$(node -p 'new (require("www-authenticate").parsers.WWW_Authenticate)(process.argv[1]).err' "$CHALLENGE")"
pip_install www-authenticate==0.9.2
seen 'www-authenticate (Python), schemes' 'bearer ,' \
    "$(v/bin/python -c 'import sys, www_authenticate; print(*www_authenticate.parse(sys.argv[1]))' "$CHALLENGE")"
