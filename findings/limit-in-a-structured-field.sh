#!/usr/bin/env bash
# RateLimit: "default";r=50;t=30
#
# draft-ietf-httpapi-ratelimit-headers, from draft 8 on: a list of policies with what remains (r) and the seconds until the reset
# (t). In draft 7 the field was limit=100, remaining=50, reset=30.
# Guess: a parser of these fields that was made after draft 8 reads it, and one that was made before finds nothing in it.
# Seen: ratelimit-header-parser 0.1.0 (npm), which knows draft 7, gives a limit and a rest of NaN, and an invalid date for the
# reset. ratelimit-headers 0.1.0 (Python, of 2026) finds nothing in the forms of draft 7 and 8, and RateLimit-Policy beside it
# makes it take the answer for one of the older drafts, with nothing in it.
# A client that compares what remains with 0 goes on with NaN, and never waits.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install ratelimit-header-parser@0.1.0
pip_install ratelimit-headers==0.1.0
npm() {
    node -e '
        const { parseRateLimit } = require("ratelimit-header-parser");
        const { limit, remaining, reset } = parseRateLimit({ ratelimit: process.argv[1] });
        console.log(limit, remaining, isNaN(reset) ? "no date" : "a date");' "$1"
}
python() {
    v/bin/python -c '
import sys
from ratelimit_headers import parse
found = parse(response_headers=dict(line.split(": ", 1) for line in sys.argv[1:]))
print(found.source, found.limit, found.remaining, found.reset and "a date")' "$@"
}
seven='limit=100, remaining=50, reset=30'
eight='"default";r=50;t=30'
seen 'npm: draft 7' '100 50 a date' "$(npm "$seven")"
seen 'npm: draft 8' 'NaN NaN no date' "$(npm "$eight")"
seen 'Python: draft 6' 'ietf 100 50 a date' "$(python 'RateLimit-Limit: 100' 'RateLimit-Remaining: 50' 'RateLimit-Reset: 30')"
seen 'Python: draft 7' 'unknown None None None' "$(python "RateLimit: $seven")"
seen 'Python: draft 8' 'unknown None None None' "$(python "RateLimit: $eight")"
seen 'Python: draft 8 with a policy' 'ietf None None None' \
    "$(python "RateLimit: $eight" 'RateLimit-Policy: "default";q=100;w=60')"
