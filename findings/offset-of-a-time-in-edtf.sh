#!/usr/bin/env bash
# 1985-04-12T23:20:30+04:30
#
# Library of Congress, "Extended Date/Time Format": this is 18:50:30 in UTC. The year 0000 is the one before 0001. [1667,1670..1672] is one
# of these years, the last of which is 1672. A text that is written again is the same.
# Guess: libraries for EDTF agree about these.
# Seen: @edtf-ts/core 0.4.2 (npm) finds 23:20:30 in UTC, and takes the year 0000 for 1900. edtf 4.11.1 (npm) takes 1670 for the last year
# of the set. edtf 5.0.2 (Python) writes Y3388E2S3, a year with an exponent, with S3 twice, and fails at a list that begins with "..".
# Letters of the year 0 are sorted among those of 1900.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install @edtf-ts/core@0.4.2 edtf@4.11.1
pip_install edtf==5.0.2
cat >read.mjs <<'JS'
import { parse } from "@edtf-ts/core";
import edtf from "edtf";
const [library, text] = process.argv.slice(2);
try {
    const { min, max } = library === "edtf" ? edtf(text) : parse(text).value;
    console.log(...[min, max].map((time) => new Date(Number(time)).toISOString().slice(0, 16)));
} catch {
    console.log("error");
}
JS
again() {
    v/bin/python -c '
import edtf, sys
try:
    found = edtf.parse_edtf(sys.argv[1])
    found.lower_strict()
    print(found)
except TypeError:
    print("error")' "$1"
}
# each TEXT EDTF @EDTF-TS/CORE: the first and the last minute
each() {
    seen "edtf of npm: $1" "$2" "$(node read.mjs edtf "$1")"
    seen '  @edtf-ts/core' "$3" "$(node read.mjs @edtf-ts/core "$1")"
}
each 1985 '1985-01-01T00:00 1985-12-31T23:59' '1985-01-01T00:00 1985-12-31T23:59'
each 1985-04-12T23:20:30+04:30 '1985-04-12T18:50 1985-04-12T18:50' '1985-04-12T23:20 1985-04-12T23:20'
each 0000 '0000-01-01T00:00 0000-12-31T23:59' '1900-01-01T00:00 1900-12-31T23:59'
each '[1667,1670..1672]' '1667-01-01T00:00 1670-12-31T23:59' '1667-01-01T00:00 1672-12-31T23:59'
for text in 1985 '{1960, 1961-12}'; do
    seen "edtf of Python: $text" "$text" "$(again "$text")"
done
seen 'edtf of Python: Y3388E2S3' Y3388E2S3S3 "$(again Y3388E2S3)"
seen 'edtf of Python: {..1983, 1984}' error "$(again '{..1983, 1984}')"
