#!/usr/bin/env bash
# 2024-02-29t10:11:12z
#
# RFC 3339, section 5.6: T and Z may be in small letters, as ABNF knows no capitals. ISO 8601 has capitals alone, and
# RFC 5424 wants them for syslog.
# Guess: libraries for dates of the net take both, as a part of their users means RFC 3339.
# Seen: moment 2.31.0, date-fns 4.4.0 (npm), isodate 0.7.2, iso8601 2.1.0, aniso8601 10.0.1 and pendulum 3.3.0 (Python)
# refuse it, and so does Go 1.26 with the layout that it calls RFC3339. iso8601 1.1.1 (npm) drops the time of the day.
# luxon 3.7.2, dayjs 1.11.23 (npm), ciso8601 2.4.1, python-dateutil 2.9.0.post0 and pyRFC3339 2.1.1 (Python) read it.
# Capitals are the form to write.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install moment@2.31.0 date-fns@4.4.0 iso8601@1.1.1 luxon@3.7.2 dayjs@1.11.23
pip_install isodate==0.7.2 iso8601==2.1.0 aniso8601==10.0.1 pendulum==3.3.0 pyRFC3339==2.1.1 ciso8601==2.4.1 \
    python-dateutil==2.9.0.post0
export TZ=UTC
TEXT=2024-02-29t10:11:12z
read_js() {
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
        console.log(isNaN(date) ? "refused" : date.toISOString());' "$1" "${2:-$TEXT}"
}
read_python() {
    v/bin/python -c '
import importlib, sys
module, name, text = sys.argv[1:]
try:
    print(getattr(importlib.import_module(module), name)(text))
except ValueError:
    print("refused")' "$1" "$2" "${3:-$TEXT}"
}
seen 'moment' refused "$(read_js moment)"
seen 'date-fns' refused "$(read_js date-fns)"
seen 'iso8601 of npm, in capitals' 2024-02-29T10:11:12.000Z "$(read_js iso8601 2024-02-29T10:11:12Z)"
seen 'iso8601 of npm' 2024-02-29T00:00:00.000Z "$(read_js iso8601)"
seen 'luxon' 2024-02-29T10:11:12.000Z "$(read_js luxon)"
seen 'dayjs' 2024-02-29T10:11:12.000Z "$(read_js dayjs)"
seen 'isodate' refused "$(read_python isodate parse_datetime)"
seen 'iso8601' refused "$(read_python iso8601 parse_date)"
seen 'aniso8601' refused "$(read_python aniso8601 parse_datetime)"
seen 'pendulum' refused "$(read_python pendulum parse)"
seen 'pyRFC3339' '2024-02-29 10:11:12+00:00' "$(read_python pyrfc3339 parse)"
seen 'ciso8601' '2024-02-29 10:11:12+00:00' "$(read_python ciso8601 parse_datetime)"
seen 'dateutil' '2024-02-29 10:11:12+00:00' "$(read_python dateutil.parser isoparse)"
cat >go.mod <<'GO'
module finding
go 1.26
GO
cat >main.go <<'GO'
package main

import (
	"fmt"
	"os"
	"time"
)

func main() {
	_, err := time.Parse(time.RFC3339, os.Args[1])
	fmt.Println(err == nil)
}
GO
go build -o read .
seen 'Go' false "$(./read $TEXT)"
