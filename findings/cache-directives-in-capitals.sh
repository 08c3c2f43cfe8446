#!/usr/bin/env bash
# Cache-Control: MAX-AGE=60
#
# RFC 9111, section 5.2: the names of cache directives are case-insensitive, and an argument may be a token or a quoted
# string, both of which a recipient has to accept.
# Guess: each library that caches by these rules writes the names small before it compares.
# Seen: http-cache-semantics 4.2.0 (npm), CacheControl 0.14.3 and Werkzeug 3.1.3 (Python) each pass over MAX-AGE, so that
# the answer has no lifetime; CacheControl passes over max-age="60", too. The other two read that as 60.
# If a cache in front of such a client keeps an answer that the client does not, that is no fault of the cache.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install http-cache-semantics@4.2.0
semantics() {
    node -e '
        const Policy = require("http-cache-semantics");
        const answer = { status: 200, headers: { "cache-control": process.argv[1] } };
        const policy = new Policy({ method: "GET", url: "/", headers: {} }, answer);
        console.log(policy.maxAge());' "$1"
}
seen 'http-cache-semantics: max-age=60' 60 "$(semantics 'max-age=60')"
seen 'http-cache-semantics: max-age="60"' 60 "$(semantics 'max-age="60"')"
seen 'http-cache-semantics: MAX-AGE=60' 0 "$(semantics 'MAX-AGE=60')"

pip_install cachecontrol==0.14.3 werkzeug==3.1.3
controller() {
    v/bin/python -c '
import sys
from cachecontrol.controller import CacheController
print(CacheController().parse_cache_control({"cache-control": sys.argv[1]}).get("max-age"))' "$1"
}
seen 'CacheControl: max-age=60' 60 "$(controller 'max-age=60')"
seen 'CacheControl: max-age="60"' None "$(controller 'max-age="60"')"
seen 'CacheControl: MAX-AGE=60' None "$(controller 'MAX-AGE=60')"

werkzeug() {
    v/bin/python -c '
import sys
from werkzeug.http import parse_cache_control_header
from werkzeug.datastructures import ResponseCacheControl
print(parse_cache_control_header(sys.argv[1], cls=ResponseCacheControl).max_age)' "$1"
}
seen 'Werkzeug: max-age=60' 60 "$(werkzeug 'max-age=60')"
seen 'Werkzeug: max-age="60"' 60 "$(werkzeug 'max-age="60"')"
seen 'Werkzeug: MAX-AGE=60' None "$(werkzeug 'MAX-AGE=60')"
