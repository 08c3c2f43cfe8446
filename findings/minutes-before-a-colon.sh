#!/usr/bin/env bash
# a duration of 1:30
#
# Clocks, logs and tools such as ps write a minute and a half so. No standard of durations has the form, so that a library
# may well refuse it.
# Guess: a parser of durations gives 90 seconds, or 5400, or nothing.
# Seen: parse-duration 2.1.9 (npm) gives 1.03 milliseconds, and 10 milliseconds for 10:00, without an error. For 1 30 it
# gives 130. pytimeparse 1.1.10 (Python) gives 90 seconds, and ms 2.1.3 (npm) nothing.
# A time limit that a person writes as on a clock ends at once.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install parse-duration@2.1.9 ms@2.1.3
pip_install pytimeparse==1.1.10
parse() {
    node -e 'import("parse-duration").then(library => console.log(library.default(process.argv[1])))' "$1"
}
seen 'pytimeparse: 1:30' 90 "$(v/bin/python -c 'import pytimeparse; print(pytimeparse.parse("1:30"))')"
seen 'ms: 1:30' undefined "$(node -p 'require("ms")("1:30")')"
seen 'parse-duration: 90s' 90000 "$(parse 90s)"
seen 'parse-duration: 1:30' 1.03 "$(parse 1:30)"
seen 'parse-duration: 10:00' 10 "$(parse 10:00)"
seen 'parse-duration: 1 30' 130 "$(parse '1 30')"
