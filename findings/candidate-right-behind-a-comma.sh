#!/usr/bin/env bash
# <img srcset="a.jpg 2x,b.jpg">
#
# HTML, "srcset attributes": a comma divides candidates; a blank has to follow it only where it follows an address without a
# descriptor (2x).
# Guess: a parser of srcset finds a.jpg and b.jpg.
# Seen: srcset-parse 1.1.0 (npm) gives ",b.jpg" for the second. parse-srcset 1.0.2, srcset 5.0.3 and @prettier/parse-srcset
# 3.1.0 (npm) give what was meant.
# What fetches images ahead by the first asks for a page that does not exist, for every image whose page was made smaller.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install parse-srcset@1.0.2 srcset@5.0.3 srcset-parse@1.1.0 @prettier/parse-srcset@3.1.0
cat >read.mjs <<'JS'
const [library, text] = process.argv.slice(2);
const found = await import(library);
const parse = found.parseSrcset ?? found.default.default ?? found.default;
console.log(parse(text).map(({ url, source }) => url ?? source.value).join(" "));
JS
for text in 'a.jpg 2x,b.jpg' 'a.jpg 2x, b.jpg'; do
    for library in parse-srcset srcset @prettier/parse-srcset; do
        seen "$library: $text" 'a.jpg b.jpg' "$(node read.mjs $library "$text")"
    done
done
seen 'srcset-parse: a.jpg 2x, b.jpg' 'a.jpg b.jpg' "$(node read.mjs srcset-parse 'a.jpg 2x, b.jpg')"
seen 'srcset-parse: a.jpg 2x,b.jpg' 'a.jpg ,b.jpg' "$(node read.mjs srcset-parse 'a.jpg 2x,b.jpg')"
