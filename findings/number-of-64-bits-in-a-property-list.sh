#!/usr/bin/env bash
# 9007199254740993 in a binary property list
#
# Apple's property lists in binary form, whose writer Python has, too: an integer may have 8 bytes. One of XML may have it as text, and
# has bytes in base64.
# Guess: libraries for property lists give the number, or one nearby, and the bytes.
# Seen: bplist 0.0.4 (npm) gives the lower 32 bits alone, 1, and 0 for 4294967296. fast-plist 0.1.3 (npm) gives base64 and its blanks
# for bytes, and plist 5.0.0 (npm) writes <integer>1e+21</integer>, which Python refuses. bplist-parser 0.5.0 and @plist/parse 1.1.0
# (npm) give each number as it is.
# A size above 4 GiB is a small one, without an error.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install bplist@0.0.4 bplist-parser@0.5.0 @plist/parse@1.1.0 fast-plist@0.1.3 plist@5.0.0
python3 - <<'PY'
import plistlib

content = {"exact": 9007199254740993, "large": 4294967296, "small": 300}
open("binary", "wb").write(plistlib.dumps(content, fmt=plistlib.FMT_BINARY))
open("xml", "wb").write(plistlib.dumps({"data": b"ab"}))
PY
cat >read.mjs <<'JS'
import { createRequire } from "module";
import { readFileSync } from "fs";
const require = createRequire(import.meta.url), [library, name] = process.argv.slice(2), bytes = readFileSync("binary");
const read = {
    bplist: () => {
        let found;
        require("bplist").parseBuffer(bytes, (error, [value]) => (found = value));
        return found;
    },
    "bplist-parser": () => require("bplist-parser").parseBuffer(bytes)[0],
    "@plist/parse": async () => (await import("@plist/parse")).parse(new Uint8Array(bytes).buffer),
    "fast-plist": () => require("fast-plist").parse(readFileSync("xml", "utf8")),
};
const value = (await read[library]())[name];
console.log(typeof value === "bigint" ? `${value}` : JSON.stringify(value));
JS
# each NAME BPLIST-PARSER BPLIST @PLIST/PARSE
each() {
    seen "bplist-parser: $1" "$2" "$(node read.mjs bplist-parser "$1")"
    seen '  bplist' "$3" "$(node read.mjs bplist "$1")"
    seen '  @plist/parse' "$4" "$(node read.mjs @plist/parse "$1")"
}
each small 300 300 300
each large 4294967296 0 4294967296
each exact 9007199254740993 1 9007199254740993
seen 'fast-plist: <data>' '"\n\tYWI=\n\t"' "$(node read.mjs fast-plist data)"
node --input-type=module -e 'import { build } from "plist"; console.log(build({ a: 1e21 }));' >written
seen 'plist: written' '<integer>1e+21</integer>' "$(grep -o '<integer>.*' written)"
seen 'Python, of this' refused "$(python3 -c '
import plistlib
try:
    print(plistlib.load(open("written", "rb")))
except ValueError:
    print("refused")')"
