#!/usr/bin/env bash
# v=spf1 a//64 -all
#
# RFC 7208, sections 5.6 and 12: a mechanism may have a length for IPv4, /24, one for IPv6, //64, or both. Section 4.5: the version is
# "v=spf1", and behind it stands a blank or the end, so that "v=spf10" is none. Section 6: modifiers of other names are passed over, and
# they, and "exp", may stand anywhere, behind "all", too.
# Guess: a parser of SPF reads all of this.
# Seen: spf-parse 1.0.4 (npm) gives an error for a//64 and for a modifier of another name, and a mechanism without a type, and calls the
# record valid all the same. It warns that exp behind "all" is ignored, and takes "v=spf10 -all" for SPF. pyspf 2.0.14 (Python) obeys
# the first two records, and takes the last for none.
# A record that each receiver of mail obeys is reported as wrong.
# shellcheck disable=SC2016 # templates of JavaScript
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install spf-parse@1.0.4
pip_install pyspf==2.0.14 dnspython==2.9.2
# parsed RECORD: what spf-parse finds
parsed() {
    node -e '
        const { valid, messages, mechanisms } = require("spf-parse")(process.argv[1]);
        const words = mechanisms.slice(1).map(({ type, value }) => [type, value].filter(Boolean).join(" "));
        console.log([`${valid ? "valid" : "wrong"}: ${words.join(", ")}`, ...(messages ?? []).map(({ type }) => type)].join("; "));' "$1"
}
# obeyed RECORD: what pyspf makes of a mail from 192.0.2.1, where a.example has no addresses
obeyed() {
    v/bin/python -c '
import spf, sys
query = spf.query(i="192.0.2.1", s="a@a.example", h="a.example")
query.dns = lambda *_, **__: []
print(query.check1(sys.argv[1], "a.example", 0)[0])' "$1"
}
# each RECORD PYSPF SPF-PARSE
each() {
    seen "pyspf: $1" "$2" "$(obeyed "$1")"
    seen '  spf-parse' "$3" "$(parsed "$1")"
}
each 'v=spf1 a/24 -all' fail 'valid: a /24, all'
each 'v=spf1 a//64 -all' fail 'valid: , all; error'
each 'v=spf1 a x-y=z -all' fail 'valid: a, , all; error'
each 'v=spf1 a -all exp=e.example' fail 'valid: a, all, exp e.example; warning'
each 'v=spf10 -all' none 'valid: all'
