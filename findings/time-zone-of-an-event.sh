#!/usr/bin/env bash
# DTSTART;TZID=Europe/Berlin:20250701T100000
# DURATION:PT1H30M
#
# RFC 5545, sections 3.8.2.4 and 3.8.2.5: the event begins at 10:00 in Berlin, which is 08:00 in UTC, and ends 90 minutes later. Section
# 3.3.11: \\ in a text is a backslash, so that \\n is not a new line, and a comma behind one does not divide a list. Section 1.3: names
# are the same in any letters.
# Guess: parsers of calendars find 08:00 and 09:30.
# Seen: ical 0.8.0 (npm) takes the time for one of the machine, although it gives the name of the zone, and has no end. It and node-ical
# 0.26.1 (npm) make a new line of \\n, divide a list at an escaped comma, and find no beginning in "dtstart". icalendar 7.3.2 (Python)
# reads all of these.
# Meetings are shifted by the distance between two zones.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install ical@0.8.0 node-ical@0.26.1
pip_install icalendar==7.3.2
cat >read.mjs <<'JS'
import { createRequire } from "module";
import { readFileSync } from "fs";
const require = createRequire(import.meta.url), library = process.argv[2], text = readFileSync("a.ics", "utf8");
const time = (date) => date > 0 ? date.toISOString().slice(11, 16) : "none";
const found = library === "ical" ? require("ical").parseICS(text) : require("node-ical").sync.parseICS(text);
const { start, end, summary = "", categories = [] } = Object.values(found).find((part) => part.type === "VEVENT");
console.log(time(start), time(end), JSON.stringify(summary), JSON.stringify(categories));
JS
cat >read.py <<'PY'
import datetime, icalendar, json

event = icalendar.Calendar.from_ical(open("a.ics", "rb").read()).walk("VEVENT")[0]
times = [moment.astimezone(datetime.timezone.utc).strftime("%H:%M") for moment in (event.start, event.end)]
words = [json.dumps(str(event.get("SUMMARY", ""))), json.dumps([str(name) for name in event.categories], separators=(",", ":"))]
print(*times, *words)
PY
# each LINES ICALENDAR ICAL NODE-ICAL: beginning and end in UTC, summary and categories; the machine is in New York
each() {
    local line
    for line in BEGIN:VCALENDAR VERSION:2.0 PRODID:a BEGIN:VEVENT UID:a DTSTAMP:20250101T000000Z "$1" END:VEVENT END:VCALENDAR; do
        printf '%b\r\n' "$line"
    done >a.ics
    seen "icalendar: $1" "$2" "$(TZ=America/New_York v/bin/python read.py)"
    seen '  ical' "$3" "$(TZ=America/New_York node read.mjs ical)"
    seen '  node-ical' "$4" "$(TZ=America/New_York node read.mjs node-ical)"
}
TIMES='DTSTART:20250701T080000Z\r\nDTEND:20250701T093000Z'
each "$TIMES\r\nSUMMARY:a" '08:00 09:30 "a" []' '08:00 09:30 "a" []' '08:00 09:30 "a" []'
each 'DTSTART;TZID=Europe/Berlin:20250701T100000\r\nDURATION:PT1H30M' '08:00 09:30 "" []' '14:00 none "" []' '08:00 09:30 "" []'
each "dtstart:20250701T080000Z\r\ndtend:20250701T093000Z" '08:00 09:30 "" []' 'none none "" []' 'none none "" []'
each "$TIMES"'\r\nSUMMARY:C:\\\\new' '08:00 09:30 "C:\\new" []' '08:00 09:30 "C:\\\new" []' '08:00 09:30 "C:\\\new" []'
each "$TIMES"'\r\nCATEGORIES:a,b\\,c' '08:00 09:30 "" ["a","b,c"]' '08:00 09:30 "" ["a","b\\","c"]' '08:00 09:30 "" ["a","b\\","c"]'
