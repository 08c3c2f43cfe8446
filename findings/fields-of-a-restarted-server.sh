#!/usr/bin/env bash
# #Fields: date time c-ip sc-status
# 2024-10-10 13:55:36 192.0.2.1 200
# #Fields: date time c-ip cs-method sc-status
#
# The W3C draft on the extended log format: each line is an entry or a directive, and #Fields names what entries hold.
# IIS writes the four lines of its header anew, into the same file, when it restarts or when its fields are changed.
# Guess: a reader of logs of IIS takes the names in the last line with #Fields.
# Seen: lars 1.0 (Python) ends with the error "Second #Fields directive found", although the names are the same. It takes
# a second #Date.
# The log of a day on which the server was restarted has to be cut into pieces before.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install lars==1.0
cat >read.py <<'PY'
import sys
from lars.iis import IISError, IISSource
read = []
try:
    with IISSource(iter([line + "\n" for line in sys.argv[1:]])) as source:
        for row in source:
            read.append(str(row.sc_status))
except IISError as error:
    read.append(str(error))
print(*read, sep=", ")
PY
version='#Version: 1.0'
date='#Date: 2024-10-10 13:55:36'
fields='#Fields: date time c-ip sc-status'
first='2024-10-10 13:55:36 192.0.2.1 200'
second='2024-10-10 14:00:01 192.0.2.1 404'
read_log() {
    v/bin/python read.py "$@"
}
seen 'one header' '200, 404' "$(read_log "$version" "$date" "$fields" "$first" "$second")"
seen 'a second #Date' '200, 404' "$(read_log "$version" "$date" "$fields" "$first" "$date" "$second")"
seen 'a second #Fields' '200, Line 5: Second #Fields directive found' \
    "$(read_log "$version" "$date" "$fields" "$first" "$fields" "$second")"
