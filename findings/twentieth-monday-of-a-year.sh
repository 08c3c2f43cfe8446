#!/usr/bin/env bash
# RRULE:FREQ=YEARLY;BYDAY=20MO
#
# RFC 5545, section 3.8.5.3: by its examples this is the 20th Monday of each year, and BYWEEKNO=20;BYDAY=MO the Monday of week 20.
# Section 3.3.10: BYSETPOS takes the first or the last of the days that a rule finds in a year or a week, and days that do not exist,
# such as 29 February 2025, are passed over.
# Guess: libraries for such rules agree about them.
# Seen: ical.js 2.2.1 (npm) finds each Monday for the first two rules. It ignores BYSETPOS in rules for years and weeks, and finds
# 1 March for 29 February. rrule 2.8.1 (npm) finds 12:30 in steps of 90 minutes from 9:00, which BYHOUR cuts to the hours 9 and 12,
# where the steps come to 12:00. rrule-temporal 2.2.8 (npm) and python-dateutil 2.9.0.post0 (Python) read all of them.
# A meeting of once a year is in the calendar of each week.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install ical.js@2.2.1 rrule@2.8.1 rrule-temporal@2.2.8
pip_install python-dateutil==2.9.0.post0
cat >days.mjs <<'JS'
const [library, rule] = process.argv.slice(2), start = "20250101T090000";
if (library === "ical.js") {
    const { default: ical } = await import("ical.js");
    const times = ical.Recur.fromString(rule).iterator(ical.Time.fromDateTimeString("2025-01-01T09:00:00"));
    const found = [];
    for (let time; (time = times.next()); ) found.push(time.toString());
    print(found);
} else if (library === "rrule") {
    const { default: { rrulestr } } = await import("rrule");
    print(rrulestr(`DTSTART:${start}Z\nRRULE:${rule}`).all().map((time) => time.toISOString()));
} else {
    const { RRuleTemporal } = await import("rrule-temporal");
    print(new RRuleTemporal({ rruleString: `DTSTART:${start}Z\nRRULE:${rule}` }).all().map(String));
}
function print(times) {
    console.log(times.map((time) => time.slice(2, 16).replace("T09:00", "")).join(" "));
}
JS
# days LIBRARY RULE: the times of this rule from 9:00 on 1 January 2025, a Wednesday; 9:00 is left out
days() {
    if [[ $1 == python-dateutil ]]; then
        v/bin/python -c '
import sys
from dateutil.rrule import rrulestr
times = rrulestr("DTSTART:20250101T090000\nRRULE:" + sys.argv[1])
print(" ".join(time.isoformat()[2:16].replace("T09:00", "") for time in times))' "$2"
    else
        node days.mjs "$1" "$2"
    fi
}
# each RULE EXPECTED ICAL.JS RRULE
each() {
    seen "python-dateutil: $1" "$2" "$(days python-dateutil "$1")"
    seen '  rrule-temporal' "$2" "$(days rrule-temporal "$1")"
    seen '  ical.js' "${3:-$2}" "$(days ical.js "$1")"
    seen '  rrule' "${4:-$2}" "$(days rrule "$1")"
}
each 'FREQ=YEARLY;BYDAY=20MO;COUNT=3' '25-05-19 26-05-18 27-05-17' '25-01-06 25-01-13 25-01-20'
each 'FREQ=YEARLY;BYWEEKNO=20;BYDAY=MO;COUNT=3' '25-05-12 26-05-11 27-05-17' '25-01-06 25-01-13 25-01-20'
each 'FREQ=YEARLY;BYDAY=MO;BYSETPOS=1,-1;COUNT=3' '25-01-06 25-12-29 26-01-05' '25-01-06 25-01-13 25-01-20'
each 'FREQ=WEEKLY;BYDAY=TH,FR;BYSETPOS=1;COUNT=3' '25-01-02 25-01-09 25-01-16' '25-01-02 25-01-03 25-01-09'
each 'FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29;COUNT=2' '28-02-29 32-02-29' '25-03-01 26-03-01'
each 'FREQ=MINUTELY;INTERVAL=90;BYHOUR=9,12;COUNT=3' '25-01-01 25-01-01T12:00 25-01-02' '' '25-01-01 25-01-01T12:30 25-01-02T12:00'
