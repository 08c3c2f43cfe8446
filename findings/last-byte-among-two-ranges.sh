#!/usr/bin/env bash
# Range: bytes=0-4, -1
#
# RFC 9110, sections 14.1.1 and 14.1.2: -1 is the last byte, in a list, too. Section 5.6.1.2: blanks may stand beside a comma, and an
# element of a list may be empty.
# Guess: parsers of Range find the first five bytes and the last one.
# Seen: http-range-parse 1.0.0 (npm) finds a range whose first byte is null, and whose last one is 1, although it finds a suffix of 1 in
# "bytes=0-4,-1". http-range 1.0.0 (npm) refuses the blank, and both refuse an empty element. header-range-parser 2.0.0 (npm) reads
# all of them.
# A program that takes null for 0 sends the first two bytes for the last one.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install http-range-parse@1.0.0 http-range@1.0.0 header-range-parser@2.0.0
ranges() {
    node -e '
        const [name, field] = process.argv.slice(1), library = require(name);
        const read = {
            "http-range-parse": () => library(field).ranges ?? [library(field)],
            "http-range": () => library.Range.prototype.parse(field)._ranges.map((range) => range._range),
            "header-range-parser": () => library.parseRange(10, field),
        };
        try {
            console.log(JSON.stringify(read[name]()).replace(/,?"unit":"bytes"/, "").replaceAll("\"", ""));
        } catch {
            console.log("error");
        }' "$1" "$2"
}
# each FIELD HEADER-RANGE-PARSER HTTP-RANGE HTTP-RANGE-PARSE; the first has 10 for the length of the file
each() {
    seen "header-range-parser: $1" "$2" "$(ranges header-range-parser "$1")"
    seen '  http-range' "$3" "$(ranges http-range "$1")"
    seen '  http-range-parse' "$4" "$(ranges http-range-parse "$1")"
}
each bytes=0-4 '[{end:4,start:0}]' '[[0,4]]' '[{first:0,last:4}]'
each bytes=0-4,-1 '[{end:4,start:0},{end:9,start:9}]' '[[0,4],[null,1]]' '[{first:0,last:4},{suffix:1}]'
each 'bytes=0-4, -1' '[{end:4,start:0},{end:9,start:9}]' error '[{first:0,last:4},{first:null,last:1}]'
each bytes=0-4,,6-7 '[{end:4,start:0},{end:7,start:6}]' error error
