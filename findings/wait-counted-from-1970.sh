#!/usr/bin/env bash
# X-RateLimit-Limit: 9
# X-RateLimit-Remaining: 0
# Retry-After: 60
#
# RFC 9110, section 10.2.3: Retry-After has seconds, or a date. Servers send it beside fields of a limit that have no reset.
# Guess: a parser of these fields gives a minute from now for the reset, as it reads Retry-After where no other field says it.
# Seen: ratelimit-header-parser 0.1.0 (npm) gives a minute past the beginning of 1970, and an invalid date for a date.
# ratelimit-headers 0.1.0 (Python) gives neither a reset nor a wait, although it gives 60 without the other two fields.
# A client that waits until the reset does not wait at all, and asks again at once.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install ratelimit-header-parser@0.1.0
pip_install ratelimit-headers==0.1.0
npm() {
    node -e '
        const { parseRateLimit } = require("ratelimit-header-parser");
        const lines = { "x-ratelimit-limit": "9", "x-ratelimit-remaining": "0", [process.argv[1]]: process.argv[2] };
        const { reset } = parseRateLimit(lines);
        const wait = Math.round((reset - Date.now()) / 1000);
        console.log(wait === 60 ? "in a minute" : isNaN(reset) ? "no date" : reset.toISOString());' "$@"
}
python() {
    v/bin/python -c '
import sys
from ratelimit_headers import parse
fields = dict(line.split(": ", 1) for line in sys.argv[1:])
print(parse(response_headers=fields).retry_after)' "$@"
}
seen 'npm: X-RateLimit-Reset: 60' 'in a minute' "$(npm x-ratelimit-reset 60)"
seen 'npm: Retry-After: 60' 1970-01-01T00:01:00.000Z "$(npm retry-after 60)"
seen 'npm: Retry-After with a date' 'no date' "$(npm retry-after 'Fri, 31 Dec 2027 23:59:59 GMT')"
seen 'Python: Retry-After: 60 alone' 60 "$(python 'Retry-After: 60')"
seen 'Python: beside X-RateLimit-Remaining' None "$(python 'X-RateLimit-Remaining: 0' 'Retry-After: 60')"
seen 'Python: beside RateLimit-Remaining' 60 "$(python 'RateLimit-Remaining: 0' 'Retry-After: 60')"
