#!/usr/bin/env bash
# Disallow: /%7Ea, and the address /~a
#
# RFC 9309, section 2.2.2: octets that are percent-encoded are decoded before the comparison, unless they are reserved.
# RFC 3986, section 2.3: the tilde is not. Section 2.2.3 of RFC 9309: %24 in a rule stands for a dollar sign.
# Guess: a parser that takes /a%2fb and /a%2Fb for the same takes these for the same.
# Seen: robots-parser 3.0.1 (npm) allows /~a and /a$ in spite of Disallow: /%7Ea and /a%24. Protego 0.7.0 (Python) forbids
# both.
# Rules that a generator wrote with percent signs are without effect for the crawlers that use this parser.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install robots-parser@3.0.1
pip_install protego==0.7.0
js() {
    node -p '
        const [rule, path] = process.argv.slice(1);
        const parser = require("robots-parser")("https://a.example/robots.txt", "User-agent: *\nDisallow: " + rule);
        parser.isAllowed("https://a.example" + path, "a")' "$@"
}
python() {
    v/bin/python -c '
import sys
from protego import Protego
print(Protego.parse("User-agent: *\nDisallow: " + sys.argv[1]).can_fetch("https://a.example" + sys.argv[2], "a"))' "$@"
}
# row RULE PATH OF_ROBOTS_PARSER
row() {
    seen "protego: $1 and $2" False "$(python "$1" "$2")"
    seen "robots-parser: $1 and $2" "$3" "$(js "$1" "$2")"
}
row /~a /~a false
row /a%2fb /a%2Fb false
row /%7Ea /~a true
# shellcheck disable=SC2016 # a dollar sign
row /a%24 '/a$' true
