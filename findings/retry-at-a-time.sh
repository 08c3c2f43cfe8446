#!/usr/bin/env bash
# Retry-After: a date of a minute from now, in an answer of ACME
#
# RFC 8555, section 7.5.1, and RFC 9110, section 10.2.3: the field has seconds or a date, whose time zone is GMT.
# Guess: a client of ACME waits a minute for either.
# Seen: acme 5.9.0 (Python), the library of certbot, compares the date in GMT with its local clock: the wait is of five hours and
# a minute in a time zone five hours west of Greenwich, and of none to the east of it. It is of a minute for 60.
# An authority that names dates lets these clients wait until their own deadline, or has them ask at once.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install acme==5.9.0
# wait_in TIME_ZONE KIND: the minutes that it waits
wait_in() {
    TZ=$1 v/bin/python -c '
import datetime, email.utils, sys, time
import requests
from acme.client import ClientV2
answer = requests.Response()
answer.headers["Retry-After"] = "60" if sys.argv[1] == "seconds" else email.utils.formatdate(time.time() + 60, usegmt=True)
print(round((ClientV2.retry_after(answer, 1) - datetime.datetime.now()).total_seconds() / 60))' "$2"
}
for zone in UTC0 EST5 CET-1; do
    seen "seconds, in $zone" 1 "$(wait_in $zone seconds)"
done
seen 'a date, in UTC0' 1 "$(wait_in UTC0 date)"
seen 'a date, in EST5' 301 "$(wait_in EST5 date)"
seen 'a date, in CET-1' -59 "$(wait_in CET-1 date)"
