#!/usr/bin/env bash
# The number 1.0004 as a decimal of a structured field
#
# RFC 9651, section 4.1.5: at most three digits follow the point, and one that is 0 if there is nothing else: 1.0. By
# section 4.2.4, a reader fails on a number whose last character is the point.
# Guess: each serializer writes 1.0.
# Seen: structured-headers 2.1.0 (npm) writes `1.`, and `0.` for numbers below 0.0005, which its own parser refuses.
# structured-field-values 2.0.4 (npm) writes 1.0, and http_sf 1.5.0 (Python) does.
# A reader that fails on one member drops the whole field. So one small number in a field (a duration, a probability)
# takes all the others with it, at a reader that keeps to the RFC.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install structured-headers@2.1.0 structured-field-values@2.0.4
headers() {
    node -e '
        const { serializeItem } = require("structured-headers");
        console.log(serializeItem([Number(process.argv[1]), new Map()]));' "$1"
}
values() {
    node -e 'console.log(require("structured-field-values").encodeItem(Number(process.argv[1])));' "$1"
}
parse() {
    node -e '
        try { console.log(require("structured-headers").parseItem(process.argv[1])[0]); }
        catch (error) { console.log(error.constructor.name); }' "$1"
}
seen 'structured-headers: 1.25' 1.25 "$(headers 1.25)"
seen 'structured-headers: 1.0004' 1. "$(headers 1.0004)"
seen 'structured-headers: 0.0001' 0. "$(headers 0.0001)"
seen 'structured-headers, reading 1.' ParseError "$(parse 1.)"
seen 'structured-field-values: 1.0004' 1.0 "$(values 1.0004)"

pip_install http-sf==1.5.0
seen 'http_sf: 1.0004' 1.0 "$(v/bin/python -c 'import http_sf; print(http_sf.ser((1.0004, {})))')"
