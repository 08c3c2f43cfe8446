#!/usr/bin/env bash
# Content-Range:bytes 0-0/5, in a part of multipart/byteranges
#
# RFC 9110, section 14.6: each part has its Content-Range. RFC 9112, section 5: blanks behind the colon are optional, and RFC 5322, section
# 2.2, has none in its grammar of fields, which parts take over from mail.
# Guess: the parser for such answers reads the field with and without a blank.
# Seen: byteranges 1.1.0 (npm) gives an error for the whole answer, if there is none. It reads names in small letters, blanks behind a
# boundary, text before the first one, and a boundary that stands within a part as content.
# A client that asks for two ranges fails at a server that saves a byte in each part.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install byteranges@1.1.0
cat >read.cjs <<'JS'
const { parse } = require("byteranges");
for (const text of process.argv.slice(2)) {
    try {
        console.log(parse(Buffer.from(text.replaceAll("|", "\r\n")), "b").map((part) => String(part.octets)).join());
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
each 'node read.cjs' \
    '--b|Content-Range: bytes 0-0/5||h|--b|Content-Range: bytes 2-2/5||l|--b--|' h,l \
    'text|--b |content-range: bytes 0-0/5||h|--b--|' h \
    '--b|Content-Range: bytes 0-2/5||--b|--b--|' --b \
    '--b|Content-Range:bytes 0-0/5||h|--b--|' 'Content-Range header not found'
