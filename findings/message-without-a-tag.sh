#!/usr/bin/env bash
# <13>Feb  5 17:32:18 10.0.0.99 Use the BFG!
#
# RFC 3164, section 5.4: its second example, as a relay writes it: a message need not begin with the name of a program.
# Section 4.1.2: the host may be an address of IPv6.
# Guess: a parser gives the address and the text, or the text alone.
# Seen: syslog-parse 2.0.0 (npm) gives `undefined`, as for what is no message. It cuts 2001:db8::1 at its colons, into a
# program of the name 2001. glossy 0.1.7 (npm) and syslogmp 0.4 (Python) give the address and the text.
# Messages of devices without programs are lost without a trace.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install syslog-parse@2.0.0 glossy@0.1.7
pip_install syslogmp==0.4
EXAMPLE='<13>Feb  5 17:32:18 10.0.0.99 Use the BFG!'
parse() {
    node -e '
        const found = require("syslog-parse");
        const { host, process: program, message } = (found.default ?? found)(process.argv[1]) ?? {};
        console.log(host, program, message);' "$1"
}
seen 'syslog-parse: with a program' 'a.example su hello' "$(parse '<34>Oct 11 22:14:15 a.example su: hello')"
seen 'syslog-parse: the example' 'undefined undefined undefined' "$(parse "$EXAMPLE")"
seen 'syslog-parse: from 2001:db8::1' ' 2001 db8::1 su: hello' "$(parse '<34>Oct 11 22:14:15 2001:db8::1 su: hello')"
seen 'glossy: the example' '10.0.0.99 Use the BFG!' "$(node -e '
    const { host, message } = require("glossy").Parse.parse(process.argv[1]);
    console.log(host, message);' "$EXAMPLE")"
seen 'syslogmp: the example' '10.0.0.99 Use the BFG!' "$(v/bin/python -c '
import sys, syslogmp
message = syslogmp.parse(sys.argv[1].encode())
print(message.hostname, message.message.decode())' "$EXAMPLE")"
