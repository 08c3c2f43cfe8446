#!/usr/bin/env bash
# <34>1 2003-10-11T22:14:15.003Z a.example su - - [x@32473] text
#
# RFC 5424, section 6.3.1: an element of structured data may have no parameters; its name alone says something, as section
# 7 explains. Section 6.3.3: a quote and a bracket in a value stand behind a backslash.
# Guess: a parser that names each element gives the name x@32473, and the whole value of "c\"d".
# Seen: jc 1.26.1 (Python) gives an element with no name, and cuts the value at the quote, without an error. It reads an
# element with a parameter, and an escaped bracket, as meant. syslog-rfc5424-parser 0.3.2 (Python) gives the name, and the
# value with its backslash.
# Marks that a program sets without a value are lost, and so are the ends of values with quotes.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

python3 -m venv w
w/bin/pip --quiet --disable-pip-version-check install syslog-rfc5424-parser==0.3.2
pip_install jc==1.26.1
jc() {
    v/bin/python -c '
import jc, sys
print([(element["identity"], element["parameters"]) for element in jc.parse("syslog", sys.argv[1])[0]["structured_data"]])
' "<34>1 2003-10-11T22:14:15.003Z a.example su - - $1 text"
}
other() {
    w/bin/python -c '
import sys
from syslog_rfc5424_parser import SyslogMessage
print(list(SyslogMessage.parse(sys.argv[1]).sd.items()))
' "<34>1 2003-10-11T22:14:15.003Z a.example su - - $1 text"
}
seen 'jc: a parameter' "[('x@32473', {'b': 'c'})]" "$(jc '[x@32473 b="c"]')"
seen 'jc: no parameter' "[(None, {})]" "$(jc '[x@32473]')"
seen 'jc: an escaped quote' "[('x@32473', {'b': 'c'})]" "$(jc '[x@32473 b="c\"d"]')"
seen 'jc: an escaped bracket' "[('x@32473', {'b': 'c]d'})]" "$(jc '[x@32473 b="c\]d"]')"
seen 'syslog-rfc5424-parser: no parameter' "[('x@32473', {})]" "$(other '[x@32473]')"
seen 'syslog-rfc5424-parser: an escaped quote' "[('x@32473', {'b': 'c\\\\\"d'})]" "$(other '[x@32473 b="c\"d"]')"
