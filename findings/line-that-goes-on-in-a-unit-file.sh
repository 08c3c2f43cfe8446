#!/usr/bin/env bash
# ExecStart=/usr/sbin/server \
# --verbose
#
# systemd.syntax(7): a line that ends with a backslash goes on with the next one, and the backslash becomes a blank. The
# second line need not be indented.
# Guess: a parser that is made for unit files joins the lines.
# Seen: systemdunitparser 0.4 (Python) refuses the file. Where the second line is indented, it keeps the backslash and
# the end of the line in the value.
# It reads lines with Python's configparser, which goes by the indent of lines, and not by backslashes.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install systemdunitparser==0.4
read_unit() {
    printf '%s\n' '[Service]' "$@" >a.service
    v/bin/python -c '
import configparser, SystemdUnitParser
parser = SystemdUnitParser.SystemdUnitParser()
try:
    parser.read("a.service")
    print(parser.items("Service", raw=True))
except configparser.ParsingError:
    print("refused")'
}
# shellcheck disable=SC1003 # the backslash is meant
BEGIN='ExecStart=/server \'
seen 'one line' "[('ExecStart', '/server --verbose')]" "$(read_unit 'ExecStart=/server --verbose')"
seen 'two lines' refused "$(read_unit "$BEGIN" '--verbose')"
seen 'the second indented' "[('ExecStart', '/server \\\\\\n--verbose')]" "$(read_unit "$BEGIN" '    --verbose')"
