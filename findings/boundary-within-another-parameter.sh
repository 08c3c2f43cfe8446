#!/usr/bin/env bash
# Content-Type: multipart/mixed; x-boundary=z; boundary=b
#
# RFC 2045, section 5.1: parameters have names of their own, unknown ones are ignored, and a value in quotes may hold any text. RFC 9110,
# section 8.3.1: the names have no case.
# Guess: a library that takes multipart answers apart finds the boundary b.
# Seen: mixpart 0.0.6 (npm) takes the first text `boundary=` in the field, so that it finds z, and within the quotes of another parameter
# what stands there. Names in capitals, quotes, and blanks within them are right.
# It then finds no part at all in an answer whose type has such a parameter.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install mixpart@0.0.6
cat >find.mjs <<'JS'
import { extractBoundary } from "mixpart";
for (const type of process.argv.slice(2)) {
    console.log(extractBoundary(type));
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
each 'node find.mjs' \
    'multipart/mixed; boundary=b' b \
    'Multipart/Mixed; Boundary="b c"' 'b c' \
    'multipart/mixed; a="x;y"; boundary=b' b \
    'multipart/mixed; x-boundary=z; boundary=b' z \
    'multipart/mixed; a="boundary=x"; boundary=b' 'x"'
