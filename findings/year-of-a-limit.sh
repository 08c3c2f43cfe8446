#!/usr/bin/env bash
# 1 year, in a setting
#
# systemd.time(7): a year is 365.25 days, and a month a twelfth of it. A calendar has 365 days and, every fourth year, 366.
# Guess: libraries that read times of settings take one of these.
# Seen: limits 5.8.0 (Python), by which Flask-Limiter counts, takes 360 days, twelve months of 30. humanfriendly 10.0 (Python)
# takes 364, 52 weeks. pytimeparse2 1.7.1 (Python) takes 365; ms 2.1.3 and parse-duration 2.1.9 (npm) take 365.25.
# A quota for a year begins anew five days early, and the same text in two services means two dates.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install limits==5.8.0 humanfriendly==10.0 pytimeparse2==1.7.1
npm_install ms@2.1.3 parse-duration@2.1.9
python() {
    v/bin/python -c "$1"
}
limits='import limits; print(limits.parse("1 per year").get_expiry() / 86400)'
seen 'limits' 360.0 "$(python "$limits")"
seen 'limits: month' 30.0 "$(python "${limits/year/month}")"
humanfriendly='import humanfriendly; print(humanfriendly.parse_timespan("1 year") / 86400)'
seen 'humanfriendly' 364.0 "$(python "$humanfriendly")"
seen 'pytimeparse2' 365.0 "$(python 'import pytimeparse2; print(pytimeparse2.parse("1 year") / 86400)')"
seen 'ms' 365.25 "$(node -p 'require("ms")("1 year") / 86400000')"
parse='import("parse-duration").then(library => console.log(library.default("1 year") / 86400000))'
seen 'parse-duration' 365.25 "$(node -e "$parse")"
