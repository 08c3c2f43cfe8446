#!/usr/bin/env bash
# RuntimeMaxSec=1M, RuntimeMaxSec=1.5h, RuntimeMaxSec=infinity
#
# systemd.time(7), "Parsing Time Spans": M is a month of 30.44 days, and m a minute; us may be written with µ.
# Guess: a library whose purpose is this page knows its units.
# Seen: timespan-parser 1.2.0 (npm) refuses 1M, and a fraction, 1.5h, both of which systemd-analyze 252 (Debian) takes,
# and refuses infinity and 1µs. Two months are 5260032 seconds by it, and 5259600 by systemd, whose month is a twelfth
# of 365.25 days.
# A setting that systemd takes stops a program on the library.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install timespan-parser@1.2.0
read_span() {
    node -e '
        try {
            console.log(require("timespan-parser").parse(process.argv[1], "s"));
        } catch {
            console.log("refused");
        }' "$1"
}
seen 'timespan-parser: 1m' 60 "$(read_span 1m)"
seen 'timespan-parser: 1h 30min' 5400 "$(read_span '1h 30min')"
seen 'timespan-parser: 2 months' 5260032 "$(read_span '2 months')"
for span in 1M 1.5h infinity 1µs; do
    seen "timespan-parser: $span" refused "$(read_span $span)"
done

if command -v systemd-analyze >/dev/null; then
    read_of_systemd() {
        systemd-analyze timespan "$1" | sed -n 's/ *μs: //p'
    }
    seen 'systemd: 1M' 2629800000000 "$(read_of_systemd 1M)"
    seen 'systemd: 1.5h' 5400000000 "$(read_of_systemd 1.5h)"
    seen 'systemd: 2 months' 5259600000000 "$(read_of_systemd '2 months')"
fi
