#!/usr/bin/env bash
# CEF:0|v|p|1.0|100|a \| b|10|act=c \= d
#
# Common Event Format, of ArcSight, "Character Encoding": a pipe in a field of the header, and an equal sign in a value of
# the extension, stand behind a backslash, as does a backslash in both; \n in a value is a new line.
# Guess: a parser of this format takes the backslashes away.
# Seen: pycef 1.11 (Python) gives an empty name and no severity for a name with an escaped pipe or backslash, and takes
# the rest of the header for the key of the first value. In the extension it reads the escaped sign as a part of the
# value, but leaves the backslashes, and the two characters \n.
# Logs with a path, or a pattern of a rule, lose their severity there.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install pycef==1.11
read_event() {
    v/bin/python -c '
import sys, pycef

event = pycef.parse(sys.argv[1])
print({key: value for key, value in event.items() if not key.startswith("Device") and key != "CEFVersion"})
' "CEF:0|v|p|1.0|100|$1|10|$2"
}
seen 'plain' "{'Name': 'a', 'Severity': '10', 'act': 'b', 'dst': 'c'}" "$(read_event a 'act=b dst=c')"
seen 'a pipe in the name' "{'Name': '', 'b|10|act': 'c'}" "$(read_event 'a \| b' act=c)"
seen 'a backslash in the name' "{'Name': '', 'b|10|act': 'c'}" "$(read_event 'a \\ b' act=c)"
seen 'an equal sign in a value' "{'Name': 'a', 'Severity': '10', 'act': 'b \\\\= c'}" "$(read_event a 'act=b \= c')"
seen 'a new line in a value' "{'Name': 'a', 'Severity': '10', 'msg': 'b\\\\nc'}" "$(read_event a 'msg=b\nc')"
