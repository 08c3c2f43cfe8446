#!/usr/bin/env bash
# POINT M (1 2 5)
#
# OGC 06-103r4, "Simple feature access", section 7.2: the third number behind M is a measure, and behind Z a height. A number may have a
# plus sign, and begin with its point. Names may be in small letters. A collection may be empty, or have an empty part.
# Guess: libraries for this text take 5 for a measure, or refuse it, and read the rest.
# Seen: pygeoif 1.6.0 (Python) takes 5 for a height, and writes POINT Z (1 2 5). It writes the number 1e+16, which it refuses to read.
# @terraformer/wkt 2.2.2 and terraformer-wkt-parser 1.2.1 (npm) refuse small letters, a plus sign, and .5. wellknown 0.5.0 and wkt
# 0.1.1 (npm) give null for a measure, for an empty collection, and for one with an empty part; wkt does for MULTIPOINT Z, too.
# A route with the times of its points rises by some metres each second.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install @terraformer/wkt@2.2.2 terraformer-wkt-parser@1.2.1 wellknown@0.5.0 wkt@0.1.1
pip_install pygeoif==1.6.0
# read_text LIBRARY TEXT
read_text() {
    if [[ $1 == pygeoif ]]; then
        v/bin/python -c '
import pygeoif, sys
try:
    print(pygeoif.from_wkt(sys.argv[1]))
except pygeoif.exceptions.WKTParserError:
    print("error")' "$2"
        return
    fi
    node -e '
        const [name, text] = process.argv.slice(1), library = require(name);
        try {
            const found = (library.parse ?? library.wktToGeoJSON)(text);
            console.log(found && JSON.stringify(found.coordinates ?? found.geometries.length));
        } catch {
            console.log("error");
        }' "$1" "$2"
}
# each TEXT PYGEOIF TERRAFORMER TERRAFORMER-WKT-PARSER WELLKNOWN WKT
each() {
    local library text=$1
    for library in pygeoif @terraformer/wkt terraformer-wkt-parser wellknown wkt; do
        shift
        seen "$library: $text" "$1" "$(read_text $library "$text")"
    done
}
each 'POINT (1 2)' 'POINT (1 2)' '[1,2]' '[1,2]' '[1,2]' '[1,2]'
each 'POINT Z (1 2 5)' 'POINT Z (1 2 5)' '[1,2,5]' '[1,2,5]' '[1,2,5]' '[1,2,5]'
each 'POINT M (1 2 5)' 'POINT Z (1 2 5)' '[1,2,5]' '[1,2,5]' null null
each 'point (1 2)' 'POINT (1 2)' error error '[1,2]' '[1,2]'
each 'POINT (+1 2)' error error error '[1,2]' '[1,2]'
each 'POINT (.5 2)' 'POINT (0.5 2)' error error '[0.5,2]' '[0.5,2]'
each 'GEOMETRYCOLLECTION EMPTY' error 0 error null null
each 'GEOMETRYCOLLECTION (POINT (1 2), LINESTRING EMPTY)' error 2 error null null
each 'MULTIPOINT Z (1 2 3)' 'MULTIPOINT Z ((1 2 3))' '[[1,2,3]]' '[[1,2,3]]' '[[1,2,3]]' null
seen 'pygeoif: written' 'POINT (1e+16 2)' "$(v/bin/python -c 'import pygeoif; print(pygeoif.Point(1e16, 2))')"
each 'POINT (1e+16 2)' error '[10000000000000000,2]' '[10000000000000000,2]' '[10000000000000000,2]' '[10000000000000000,2]'
