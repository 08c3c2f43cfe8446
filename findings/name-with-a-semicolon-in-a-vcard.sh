#!/usr/bin/env bash
# N:A\;B;C
# NOTE:a\, b\n c
#
# RFC 6350, section 3.4: commas, semicolons and backslashes within a text stand behind a backslash, and \n is a new line. Section 5: a
# parameter in quotes may have colons and semicolons, and TYPE may be repeated. Section 3.2: a line goes on behind a line break and one
# blank, which are dropped, and no others.
# Guess: parsers of vCards give the family name "A;B", and the note with its comma and its line break.
# Seen: vcf 2.1.2 (npm) gives the family name "A\" and the given name "B", and the note as it stands. It and vcard-parser 1.0.0 (npm)
# end a parameter at a colon in quotes. vcard-parser cuts the address of a page at a semicolon, and drops both blanks of a folded
# line that has two. vcard4 4.0.5 (npm) keeps the last TYPE of two. vobject 0.9.9 (Python) reads all of them.
# Names are cut at the import, and addresses do not work.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install vcf@2.1.2 vcard-parser@1.0.0 vcard4@4.0.5
pip_install vobject==0.9.9
cat >read.js <<'JS'
const [library, line] = process.argv.slice(2), card = `BEGIN:VCARD\r\nVERSION:4.0\r\nFN:A\r\n${line}\r\nEND:VCARD\r\n`;
const name = line.split(/[;:]/)[0].toLowerCase();
const read = {
    vcf: () => {
        const [, parameters, , value] = new (require("vcf"))().parse(card).toJSON()[1].find((part) => part[0] === name);
        return [value, parameters];
    },
    "vcard-parser": () => {
        const [{ value, meta = {} }] = require("vcard-parser").parse(card)[name];
        return [value, meta];
    },
    vcard4: () => {
        const { value, parameters } = require("vcard4").parse(card).parsedVcard.find((part) => part.property === name.toUpperCase());
        return [value, parameters];
    },
};
const [value, parameters] = read[library]();
const parts = typeof value === "string" ? [value] : Object.values(value).flat();
const lower = Object.entries(parameters).map(([key, of]) => `${key.toLowerCase()}=${[of].flat().join(",")}`);
console.log(JSON.stringify(parts.filter((part) => part !== "")), ...lower);
JS
cat >read.py <<'PY'
import json, sys, vobject

line = sys.argv[1]
card = vobject.readOne(f"BEGIN:VCARD\r\nVERSION:3.0\r\nFN:A\r\n{line}\r\nEND:VCARD\r\n")
found = card.contents[line.replace(":", ";").split(";")[0].lower()][0]
if found.name == "N":
    parts = [found.value.family, found.value.given]
elif found.name == "ADR":
    parts = [found.value.street]
else:
    parts = [found.value]
print(json.dumps(parts, separators=(",", ":")), *(f'{key.lower()}={",".join(values)}' for key, values in found.params.items()))
PY
# each LINE VOBJECT VCARD4 VCARD-PARSER VCF
each() {
    local line
    line=$(printf '%b' "$1")
    seen "vobject: $1" "$2" "$(v/bin/python read.py "$line")"
    seen '  vcard4' "$3" "$(node read.js vcard4 "$line")"
    seen '  vcard-parser' "$4" "$(node read.js vcard-parser "$line")"
    seen '  vcf' "$5" "$(node read.js vcf "$line")"
}
each 'N:A\\;B;C;;;' '["A;B","C"]' '["A;B","C"]' '["A;B","C"]' '["A\\","B","C"]'
each 'NOTE:a\\, b\\n c' '["a, b\n c"]' '["a, b\n c"]' '["a, b\n c"]' '["a\\, b\\n c"]'
each 'NOTE:abc\r\n  def' '["abc def"]' '["abc def"]' '["abcdef"]' '["abc def"]'
each 'ADR;LABEL="a: b; c":;;Street;;;;' '["Street"] label=a: b; c' '["Street"] label=a: b; c' \
    '[" b"," c\":","Street"] label="a' '[" b"," c\":","Street"] label="a'
each 'TEL;TYPE=home;TYPE=fax:1' '["1"] type=home,fax' '["1"] type=fax' '["1"] type=home,fax' '["1"] type=home,fax'
URL="http://a.example/?a=b"
each "URL:$URL;c=d" "[\"$URL;c=d\"]" "[\"$URL;c=d\"]" "[\"$URL\",\"c=d\"]" "[\"$URL;c=d\"]"
