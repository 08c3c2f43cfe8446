#!/usr/bin/env bash
# 2024-02-29T24:00:00Z
#
# ISO 8601:2004, section 4.2.3, and amendment 1 of ISO 8601-1: 24:00 is the end of the day, the same instant as 00:00 of
# the next one. The edition of 2019 without its amendment lacks it.
# Guess: libraries of this standard give 1 March, or refuse it.
# Seen: aniso8601 10.0.1 (Python) gives 00:00 of 29 February, 24 hours early, without an error. isodate 0.7.2, iso8601
# 2.1.0 and pendulum 3.3.0 (Python) refuse it. ciso8601 2.4.1 and python-dateutil 2.9.0.post0 (Python), luxon 3.7.2,
# date-fns 4.4.0 and moment 2.31.0 (npm) give 1 March.
# An interval that ends with its day has no length then. RFC 3339 has no hour 24; servers should write the next day.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install aniso8601==10.0.1 isodate==0.7.2 iso8601==2.1.0 pendulum==3.3.0 ciso8601==2.4.1 python-dateutil==2.9.0.post0
npm_install luxon@3.7.2 date-fns@4.4.0 moment@2.31.0
TEXT=2024-02-29T24:00:00Z
read_with() {
    v/bin/python -c '
import importlib, sys
module, name, text = sys.argv[1:]
try:
    print(getattr(importlib.import_module(module), name)(text))
except ValueError:
    print("refused")' "$1" "$2" $TEXT
}
seen aniso8601 '2024-02-29 00:00:00+00:00' "$(read_with aniso8601 parse_datetime)"
seen isodate refused "$(read_with isodate parse_datetime)"
seen iso8601 refused "$(read_with iso8601 parse_date)"
seen pendulum refused "$(read_with pendulum parse)"
seen ciso8601 '2024-03-01 00:00:00+00:00' "$(read_with ciso8601 parse_datetime)"
seen dateutil '2024-03-01 00:00:00+00:00' "$(read_with dateutil.parser isoparse)"
seen luxon 2024-03-01T00:00:00.000Z \
    "$(node -p 'require("luxon").DateTime.fromISO(process.argv[1]).toJSDate().toISOString()' $TEXT)"
seen date-fns 2024-03-01T00:00:00.000Z "$(node -p 'require("date-fns").parseISO(process.argv[1]).toISOString()' $TEXT)"
seen moment 2024-03-01T00:00:00.000Z "$(node -p 'require("moment")(process.argv[1]).toISOString()' $TEXT)"
