#!/usr/bin/env bash
# PT0,5S
#
# ISO 8601-1, section 5.5.2: the smallest unit of a duration may have a decimal fraction, behind a comma or a point.
# Guess: libraries that read PT0.5S read PT0,5S, and those that read PT1.5H read PT1,5M, or refuse them.
# Seen: dayjs 1.11.23 (npm) gives 0 seconds for both, without an error. luxon 3.7.2 (npm) reads the comma behind seconds
# alone: PT1,5M is invalid, and PT1.5M is not. iso8601-duration 2.1.4 and moment 2.31.0 (npm), isodate 0.7.2, aniso8601
# 10.0.1 and pendulum 3.3.0 (Python) read both.
# A time limit that a file gives in this form is no time at all.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install dayjs@1.11.23 luxon@3.7.2 iso8601-duration@2.1.4 moment@2.31.0
pip_install isodate==0.7.2 aniso8601==10.0.1 pendulum==3.3.0
read_js() {
    node -p '
        const [library, text] = process.argv.slice(1);
        const found = require(library);
        String(({
            dayjs: () => { found.extend(require("dayjs/plugin/duration")); return found.duration(text).asSeconds(); },
            luxon: () => found.Duration.fromISO(text).as("seconds"),
            "iso8601-duration": () => found.toSeconds(found.parse(text)),
            moment: () => found.duration(text).asSeconds(),
        })[library]())' "$@"
}
read_python() {
    v/bin/python -c '
import importlib, sys
module, name, text = sys.argv[1:]
print(getattr(importlib.import_module(module), name)(text).total_seconds())' "$@"
}
# row TEXT SECONDS OF_DAYJS OF_LUXON
row() {
    local library
    for library in iso8601-duration moment; do
        seen "$library: $1" "$2" "$(read_js $library "$1")"
    done
    seen "isodate: $1" "$2" "$(read_python isodate parse_duration "$1" | sed 's/\.0$//')"
    seen "aniso8601: $1" "$2" "$(read_python aniso8601 parse_duration "$1" | sed 's/\.0$//')"
    seen "pendulum: $1" "$2" "$(read_python pendulum parse "$1" | sed 's/\.0$//')"
    seen "dayjs: $1" "$3" "$(read_js dayjs "$1")"
    seen "luxon: $1" "$4" "$(read_js luxon "$1")"
}
row PT0.5S 0.5 0.5 0.5
row PT0,5S 0.5 0 0.5
row PT1.5M 90 90 90
row PT1,5M 90 0 NaN
