#!/usr/bin/env bash
# { url: "/a", rel: "next", title: 'a "b"' }, written as Link
#
# RFC 8288, section 3, and RFC 9110, section 5.6.4: a value is a token or stands in quotes, with a backslash before each quote in it.
# Guess: a library that writes this field writes \" or refuses the title, and one that reads it gives the title again.
# Seen: format-link-header 3.1.1 (npm) writes title="a "b"". parse-link-header 2.0.0 (npm), to which it belongs, gives `a ` for that, and
# `a \` for the right form. http-link-header 1.1.4 (npm) gives `a "b"` for the right form, and `a ` and a parameter of the name "" for the
# other.
# A title of a work with a quote in it does not come back in any form between the two.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install format-link-header@3.1.1 parse-link-header@2.0.0 http-link-header@1.1.4
cat >use.cjs <<'JS'
const format = require("format-link-header");
const parse = require("parse-link-header");
const LinkHeader = require("http-link-header");
const actions = {
    format: (title) => format({ next: { url: "/a", rel: "next", title } }),
    parse: (text) => parse(text).next.title,
    "http-link-header": (text) => LinkHeader.parse(text).refs[0].title,
};
for (const text of process.argv.slice(2)) {
    const [action, value] = text.split("|");
    try {
        console.log(String(actions[action](value)));
    } catch (error) {
        console.log(error.message);
    }
}
JS
# each COMMAND CASE EXPECTED...: COMMAND runs once, with all cases, and prints a line for each
each() {
    local command cases=() expected=() found i
    read -ra command <<<"$1"
    shift
    while (($#)); do
        cases+=("$1")
        expected+=("$2")
        shift 2
    done
    mapfile -t found < <("${command[@]}" "${cases[@]}")
    for i in "${!cases[@]}"; do seen "${command[*]:1} ${cases[i]}" "${expected[i]}" "${found[i]-}"; done
}
each 'node use.cjs' \
    'format|a b' '</a>; rel="next"; title="a b"' \
    'format|a "b"' '</a>; rel="next"; title="a "b""' \
    'parse|</a>; rel="next"; title="a b"' 'a b' \
    'parse|</a>; rel="next"; title="a "b""' 'a ' \
    'parse|</a>; rel="next"; title="a \"b\""' "a \\" \
    'http-link-header|</a>; rel="next"; title="a "b""' 'a ' \
    'http-link-header|</a>; rel="next"; title="a \"b\""' 'a "b"'
