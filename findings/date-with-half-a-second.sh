#!/usr/bin/env bash
# the time 2022-08-04T01:57:13.500Z as a date of a structured field
#
# RFC 9651, section 3.3.7: a date is a number of whole seconds behind @; section 4.2.9: a reader fails where the number
# has a point.
# Guess: a library that knows dates drops the half of a second, or refuses it, as the value of a Date in JavaScript has
# one nearly always.
# Seen: @svta/cml-structured-field-values 1.1.6 (npm) writes @1659578233.5, which neither it nor structured-headers
# 2.1.0 (npm) reads; the second one writes @1659578233. The first one reads no display string, either, the other type
# that came with the RFC.
# A program that writes the current time so sends fields that readers ignore as a whole, but for one in a thousand.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install @svta/cml-structured-field-values@1.1.6 structured-headers@2.1.0
cat >field.mjs <<'JS'
import * as cml from "@svta/cml-structured-field-values";
import * as headers from "structured-headers";
const [library, action, text] = process.argv.slice(2);
const read = library === "cml" ? (field) => cml.decodeSfItem(field).value : (field) => headers.parseItem(field)[0];
const write = library === "cml" ? cml.encodeSfItem : headers.serializeItem;
try {
    const found = action === "read" ? read(text) : write(new Date(text));
    console.log(found instanceof Date ? found.toISOString() : String(found));
} catch {
    console.log("refused");
}
JS
field() {
    node field.mjs "$@"
}
for library in cml structured-headers; do
    seen "$library writes a whole second" @1659578233 "$(field $library write 2022-08-04T01:57:13Z)"
    seen "$library reads a whole second" 2022-08-04T01:57:13.000Z "$(field $library read @1659578233)"
    seen "$library reads half a second" refused "$(field $library read @1659578233.5)"
done
seen 'cml writes half a second' @1659578233.5 "$(field cml write 2022-08-04T01:57:13.500Z)"
seen 'structured-headers writes half a second' @1659578233 "$(field structured-headers write 2022-08-04T01:57:13.500Z)"
seen 'cml: %"f%c3%bc"' refused "$(field cml read '%"f%c3%bc"')"
seen 'structured-headers: %"f%c3%bc"' fü "$(field structured-headers read '%"f%c3%bc"')"
