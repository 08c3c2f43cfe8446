#!/usr/bin/env bash
# 2024-060
#
# ISO 8601-1, section 5.2.3: the 60th day of 2024, 29 February; section 5.2.4: 2009-W01-1 is the Monday of its first week,
# 29 December 2008.
# Guess: a library of dates reads them, or refuses what it does not know.
# Seen: dayjs 1.11.23 (npm) gives 31 May 2024, the day 0 of month 06, and refuses the week. iso8601 1.1.1 (npm) gives
# 1 June 2024 and 1 January 2009. luxon 3.7.2, date-fns 4.4.0, moment 2.31.0 (npm), ciso8601 2.4.1 and python-dateutil
# 2.9.0.post0 (Python) give the days that the standard means.
# Names of log files with the day of the year become dates three months off.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install dayjs@1.11.23 iso8601@1.1.1 luxon@3.7.2 date-fns@4.4.0 moment@2.31.0
pip_install ciso8601==2.4.1 python-dateutil==2.9.0.post0
export TZ=UTC
read_with() {
    node -e '
        const [library, text] = process.argv.slice(1);
        const found = require(library);
        const date = {
            dayjs: () => found(text).toDate(),
            iso8601: () => found.toDate(text),
            luxon: () => found.DateTime.fromISO(text).toJSDate(),
            "date-fns": () => found.parseISO(text),
            moment: () => found(text, found.ISO_8601).toDate(),
        }[library]();
        console.log(isNaN(date) ? "refused" : date.toISOString().slice(0, 10));' "$@"
}
for library in luxon date-fns moment; do
    seen "$library: day of the year" 2024-02-29 "$(read_with $library 2024-060)"
    seen "$library: day of the week" 2008-12-29 "$(read_with $library 2009-W01-1)"
done
seen 'dayjs: day of the year' 2024-05-31 "$(read_with dayjs 2024-060)"
seen 'dayjs: day of the week' refused "$(read_with dayjs 2009-W01-1)"
seen 'iso8601: day of the year' 2024-06-01 "$(read_with iso8601 2024-060)"
seen 'iso8601: day of the week' 2009-01-01 "$(read_with iso8601 2009-W01-1)"
seen 'ciso8601: day of the year' '2024-02-29 00:00:00' \
    "$(v/bin/python -c 'import ciso8601; print(ciso8601.parse_datetime("2024-060"))')"
seen 'dateutil: day of the year' '2024-02-29 00:00:00' \
    "$(v/bin/python -c 'from dateutil.parser import isoparse; print(isoparse("2024-060"))')"
