#!/usr/bin/env bash
# Content-Disposition: attachment; filename="a;b.txt"
#
# RFC 9110, section 5.6.6: the value of a parameter may be a quoted text, and semicolons within the quotes belong to
# it.
# Guess: a library whose only task is this field gives a;b.txt, and one for Content-Type gives a;b for x="a;b".
# Seen: content-disposition-parser 1.0.2 (npm) gives `a`, and a parameter `b.txt"`; it leaves the backslash in
# "a\"b.txt", too. content-type-parser 1.0.2 (npm) makes two parameters: x with `"a`, and one without a name.
# content-disposition 3.1.0 and content-type 2.0.0 (npm), the libraries of Express, read both.
# A client that keeps files by the names that a server gives keeps some without their ending.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install content-disposition-parser@1.0.2 content-type-parser@1.0.2 content-disposition@3.1.0 content-type@2.0.0
cat >read.mjs <<'JS'
const [library, field] = process.argv.slice(2);
const found = await import(library);
const parse = found.parse ?? found.default.parse ?? found.default.default ?? found.default;
const { parameters, parameterList, type, ...rest } = parse(field);
console.log(JSON.stringify(parameters ?? parameterList?.map(({ key, value }) => [key, value]) ?? rest));
JS
NAME='attachment; filename="a;b.txt"'
seen 'content-disposition-parser' '{"filename":"a","b.txt\"":true}' \
    "$(node read.mjs content-disposition-parser "$NAME")"
seen 'content-disposition-parser: a\"b.txt' '{"filename":"a\\\"b.txt"}' \
    "$(node read.mjs content-disposition-parser 'attachment; filename="a\"b.txt"')"
seen 'content-disposition' '{"filename":"a;b.txt"}' "$(node read.mjs content-disposition "$NAME")"
seen 'content-type-parser' '[["x","\"a"],[null,"b\""]]' "$(node read.mjs content-type-parser 'text/plain;x="a;b"')"
seen 'content-type' '{"x":"a;b"}' "$(node read.mjs content-type 'text/plain;x="a;b"')"
