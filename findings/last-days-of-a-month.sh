#!/usr/bin/env bash
# OnCalendar=*-02~03
#
# systemd.time(7): ~ before the day counts from the end of the month, so that this is the third last day of February,
# and *-*~1 the last day of each month. An expression without a time is for 00:00:00.
# Guess: a library that is made for this page counts from 1, as the page does.
# Seen: sysdtime-py 0.1.2 (Python) gives 25 February 2026, which is the fourth last, and 30 January for *-*~1, the day
# before the last; and as the time of each it gives 00:00:01. systemd-analyze 252 (Debian) gives 26 February and 31
# January, at 00:00:00.
# A program that tells by the library when timers will fire is a day early, and knows only their dates.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install sysdtime-py==0.1.2
next() {
    v/bin/python -c '
import datetime, sys, sysdtime
print(sysdtime.next_occurrence(sys.argv[1], datetime.datetime(2026, 1, 1, 0, 0, 0)))' "$1"
}
seen 'sysdtime-py: weekly' '2026-01-05 00:00:00' "$(next weekly)"
seen 'sysdtime-py: *-02~03' '2026-02-25 00:00:01' "$(next '*-02~03')"
seen 'sysdtime-py: *-*~1' '2026-01-30 00:00:01' "$(next '*-*~1')"
seen 'sysdtime-py: Wed *-1' '2026-04-01 00:00:01' "$(next 'Wed *-1')"

if command -v systemd-analyze >/dev/null; then
    next_of_systemd() {
        systemd-analyze calendar --base-time='2026-01-01 00:00:00 UTC' "$1" | sed -n 's/ *Next elapse: //p'
    }
    export TZ=UTC
    seen 'systemd: *-02~03' 'Thu 2026-02-26 00:00:00 UTC' "$(next_of_systemd '*-02~03')"
    seen 'systemd: *-*~1' 'Sat 2026-01-31 00:00:00 UTC' "$(next_of_systemd '*-*~1')"
fi
