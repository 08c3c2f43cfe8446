#!/usr/bin/env bash
# a field "hello, world", in the line protocol of InfluxDB
#
# The line protocol: a field that is a text stands in quotes, and a backslash is before quotes and backslashes in it alone. In
# names and tags it is before commas, blanks and equal signs; in the name of a measurement, before commas and blanks.
# Guess: a library that writes such lines puts backslashes where the place needs them.
# Seen: influx-line 1.0.0 (Python) writes all texts as tags: "hello\,\ world", whose reader gets the backslashes; it has none
# for a backslash, and none for the name of a measurement. influx-line-protocol 0.1.5 (Python) writes each as meant. Read by
# line-protocol-parser 2.0.1 (Python).
# Texts arrive changed, and a measurement with a blank is refused.
# shellcheck disable=SC1003 # texts that end with a backslash
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install influx-line==1.0.0 influx-line-protocol==0.1.5 line-protocol-parser==2.0.1
cat >write.py <<'PY'
import sys
from line_protocol_parser import LineFormatError, parse_line

library, name, text = sys.argv[1:]
if library == "influx-line":
    from influx_line import InfluxLine
    line = InfluxLine(name)
    line.add_field("f", text)
else:
    from influx_line_protocol import Metric
    line = Metric(name)
    line.add_value("f", text)
print(line, end=" / ")
try:
    read = parse_line(str(line))
    print(read["measurement"], read["fields"]["f"])
except LineFormatError:
    print("refused")
PY
write() {
    v/bin/python write.py "$@" | sed 's/ *\/ / \/ /'
}
seen 'influx-line-protocol: text' 'm f="hello, world" / m hello, world' "$(write influx-line-protocol m 'hello, world')"
seen 'influx-line-protocol: backslash' 'm f="a\\" / m a\' "$(write influx-line-protocol m 'a\')"
seen 'influx-line-protocol: name' 'a\ m f="b" / a m b' "$(write influx-line-protocol 'a m' b)"
seen 'influx-line: text' 'm f="hello\,\ world" / m hello\,\ world' "$(write influx-line m 'hello, world')"
seen 'influx-line: backslash' 'm f="a\" / refused' "$(write influx-line m 'a\')"
seen 'influx-line: name' 'a m f="b" / refused' "$(write influx-line 'a m' b)"
