#!/usr/bin/env bash
# <0>1 - h a p m - text
#
# RFC 5424, section 6.2.1: the priority is eight times the facility plus the severity. 0 is the most urgent of all: an
# emergency (0) of the kernel (0).
# Guess: a parser of syslog messages tells the facility kern and the severity emerg.
# Seen: glossy 0.1.7 (npm) keeps the number 0, and tells neither, as if the line had no priority. It tells both for 1
# and for 8. nsyslog-parser 0.10.1 (npm) tells both for all three.
# An alarm on the severity never goes off for the gravest line that there is.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install glossy@0.1.7 nsyslog-parser@0.10.1
cat >read.js <<'JS'
const [library, priority] = process.argv.slice(2);
const line = `<${priority}>1 - h a p m - text`;
if (library === "glossy") {
    const { prival, facility, severity } = require("glossy").Parse.parse(line);
    console.log(prival, facility, severity);
} else {
    const { prival, facility, level } = require("nsyslog-parser")(line);
    console.log(prival, facility, level);
}
JS
seen 'glossy: 0' '0 undefined undefined' "$(node read.js glossy 0)"
seen 'glossy: 1' '1 kern alert' "$(node read.js glossy 1)"
seen 'glossy: 8' '8 user emerg' "$(node read.js glossy 8)"
seen 'nsyslog-parser: 0' '0 kern emerg' "$(node read.js nsyslog-parser 0)"
