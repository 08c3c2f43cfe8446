#!/usr/bin/env bash
# Set-Cookie: a=; Max-Age=0
#
# RFC 6265, section 4.1.1: the value of a cookie may be empty, as it often is where a server ends a cookie; an equal sign may be
# a part of it. Section 5.2: a client passes over attributes that it does not know, and Partitioned is a newer one.
# Guess: a library that reads this field and writes it again reads an empty value, and writes what it read.
# Seen: set-cookie-serde 1.0.0 (npm) refuses the empty value. It writes b=c as b%3Dc and "b" as %22b%22, other values, and
# leaves Partitioned out. tough-cookie 6.1.0 (npm) writes all as they were.
# A proxy on it cannot end a cookie, and changes those that hold base64.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install set-cookie-serde@1.0.0 tough-cookie@6.1.0
serde() {
    node -e 'const library = require("set-cookie-serde");
try { console.log(String(new (library.default ?? library)(process.argv[1]))) }
catch (error) { console.log(error.message) }' "$1"
}
tough() {
    node -p 'require("tough-cookie").Cookie.parse(process.argv[1]).toString()' "$1"
}
for cookie in 'a=b; Max-Age=60; Path=/' 'a=; Max-Age=0' 'a=b=c' 'a="b"' 'a=b; Partitioned'; do
    seen "tough-cookie: $cookie" "$cookie" "$(tough "$cookie")"
done
seen 'set-cookie-serde: a=b' 'a=b; Max-Age=60; Path=/' "$(serde 'a=b; Max-Age=60; Path=/')"
seen 'set-cookie-serde: a=' 'Invalid value' "$(serde 'a=; Max-Age=0')"
seen 'set-cookie-serde: a=b=c' 'a=b%3Dc' "$(serde 'a=b=c')"
seen 'set-cookie-serde: a="b"' 'a=%22b%22' "$(serde 'a="b"')"
seen 'set-cookie-serde: Partitioned' 'a=b' "$(serde 'a=b; Partitioned')"
