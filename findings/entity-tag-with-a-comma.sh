#!/usr/bin/env bash
# ETag: "a,b", and the client's If-None-Match: "a,b"
#
# RFC 9110, section 8.8.3: an entity tag may have any visible character but the double quote, so commas, too.
# Guess: a library that splits If-None-Match at commas minds the quotes, or compares the whole field first.
# Seen: fresh 2.0.0 (npm), by which Express 5 decides about 304, does neither: such a copy is never fresh, and is sent
# whole each time. Werkzeug 3.1.3 (Python) finds it.
# So an application on Express must leave commas out of its entity tags (a list of parts, a base of a backup).
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install fresh@2.0.0
fresh() {
    node -e '
        const fresh = require("fresh");
        console.log(fresh({ "if-none-match": process.argv[1] }, { etag: process.argv[2] }));' "$1" "$2"
}
seen 'fresh: "x", "ab" of "ab"' true "$(fresh '"x", "ab"' '"ab"')"
seen 'fresh: "a,b" of "a,b"' false "$(fresh '"a,b"' '"a,b"')"

pip_install werkzeug==3.1.3
werkzeug() {
    v/bin/python -c '
import sys
from werkzeug.http import parse_etags, unquote_etag
print(parse_etags(sys.argv[1]).contains(unquote_etag(sys.argv[2])[0]))' "$1" "$2"
}
seen 'Werkzeug: "a,b" of "a,b"' True "$(werkzeug '"a,b"' '"a,b"')"
