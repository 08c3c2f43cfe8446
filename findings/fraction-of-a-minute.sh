#!/usr/bin/env bash
# 2024-02-29T10:11.5Z
#
# ISO 8601-1, section 5.3.1.4: the last unit of a time may have a decimal fraction: here half a minute after 10:11.
# Guess: a library that allows times without seconds reads the fraction, or refuses it.
# Seen: iso8601 2.1.0 (Python) gives 10:00:11.5: it takes the minutes for seconds. isodate 0.7.2 and aniso8601 10.0.1
# (Python) give 10:11:30. ciso8601 2.4.1, pendulum 3.3.0 and python-dateutil 2.9.0.post0 (Python) refuse it.
# The error of eleven minutes is silent; servers should write seconds.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install iso8601==2.1.0 isodate==0.7.2 aniso8601==10.0.1 ciso8601==2.4.1 pendulum==3.3.0 python-dateutil==2.9.0.post0
read_with() {
    v/bin/python -c '
import importlib, sys
module, name, text = sys.argv[1:]
try:
    print(getattr(importlib.import_module(module), name)(text))
except ValueError:
    print("refused")' "$1" "$2" "${3:-2024-02-29T10:11.5Z}"
}
seen 'iso8601: no seconds' '2024-02-29 10:11:00+00:00' "$(read_with iso8601 parse_date 2024-02-29T10:11Z)"
seen iso8601 '2024-02-29 10:00:11.500000+00:00' "$(read_with iso8601 parse_date)"
seen isodate '2024-02-29 10:11:30+00:00' "$(read_with isodate parse_datetime)"
seen aniso8601 '2024-02-29 10:11:30+00:00' "$(read_with aniso8601 parse_datetime)"
seen ciso8601 refused "$(read_with ciso8601 parse_datetime)"
seen pendulum refused "$(read_with pendulum parse)"
seen dateutil refused "$(read_with dateutil.parser isoparse)"
