#!/usr/bin/env bash
# If-Modified-Since: Sun Nov  6 08:49:37 1994
#
# RFC 9110, section 5.6.7: recipients have to accept this form, of the C function asctime, and take it for UTC.
# Guess: each library that reads dates of HTTP does so in every time zone.
# Seen: fresh 2.0.0 (npm), by which Express 5 decides about 304, and http-cache-semantics 4.2.0 give it to
# JavaScript's Date, which takes it for local time. In New York, a file that changed five hours later is "not
# modified", and a lifetime of a minute lasts five hours; in Berlin, no lifetime of less than an hour counts.
# Dates that a proxy passes on in the form of IMF-fixdate are safe everywhere.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install fresh@2.0.0 http-cache-semantics@4.2.0
fresh() {
    TZ=$1 node -e '
        const fresh = require("fresh");
        const request = { "if-modified-since": process.argv[1] };
        console.log(fresh(request, { "last-modified": "Sun, 06 Nov 1994 12:00:00 GMT" }));' "$2"
}
ASCTIME='Sun Nov  6 08:49:37 1994'
seen 'fresh, New York: Sun, 06 Nov 1994 ...' false "$(fresh America/New_York 'Sun, 06 Nov 1994 08:49:37 GMT')"
seen 'fresh, UTC: asctime' false "$(fresh UTC "$ASCTIME")"
seen 'fresh, New York: asctime' true "$(fresh America/New_York "$ASCTIME")"

semantics() {
    TZ=$1 node -e '
        const Policy = require("http-cache-semantics");
        const headers = { date: "Sun, 06 Nov 1994 08:48:37 GMT", expires: process.argv[1] };
        const policy = new Policy({ method: "GET", url: "/", headers: {} }, { status: 200, headers });
        console.log(policy.maxAge());' "$2"
}
seen 'http-cache-semantics, UTC: asctime' 60 "$(semantics UTC "$ASCTIME")"
seen 'http-cache-semantics, New York: asctime' 18060 "$(semantics America/New_York "$ASCTIME")"
seen 'http-cache-semantics, Berlin: asctime' 0 "$(semantics Europe/Berlin "$ASCTIME")"
