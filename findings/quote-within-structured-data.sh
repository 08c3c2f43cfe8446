#!/usr/bin/env bash
# <34>1 - h a p m [a@1 b="say \"hi\""] text
#
# RFC 5424, section 6.3: an element of structured data has a name and any number of parameters, even none; within a
# value, a quote, a backslash and a closing bracket stand after a backslash.
# Guess: a parser of syslog messages gives the value `say "hi"`, and `text` for the message.
# Seen: nsyslog-parser 0.10.1 (npm) gives no structured data, and takes all of it for a part of the message; so it
# does with an element without parameters. In the value "x = y" it drops the equals sign. glossy 0.1.7 (npm) reads all
# three, but for the name of the element without parameters.
# A collector on it loses the fields of just those lines that quote something, such as a request or a user agent.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install nsyslog-parser@0.10.1 glossy@0.1.7
cat >read.js <<'JS'
const [library, data] = process.argv.slice(2);
const line = `<34>1 - h a p m ${data} text`;
const found = library === "glossy" ? require("glossy").Parse.parse(line) : require("nsyslog-parser")(line);
console.log(JSON.stringify([found.structuredData, found.message]));
JS
QUOTE='[a@1 b="say \"hi\""]'
# shellcheck disable=SC2016 # $id is the library's name
seen 'nsyslog-parser: plain' '[[{"$id":"a@1","b":"c"}],"text"]' "$(node read.js nsyslog-parser '[a@1 b="c"]')"
seen 'nsyslog-parser: quotes' '[[],"[a@1 b=\"say \\\"hi\\\"\"] text"]' "$(node read.js nsyslog-parser "$QUOTE")"
seen 'nsyslog-parser: no parameters' '[[],"[a@1] text"]' "$(node read.js nsyslog-parser '[a@1]')"
# shellcheck disable=SC2016
seen 'nsyslog-parser: x = y' '[[{"$id":"a@1","b":"x y"}],"text"]' "$(node read.js nsyslog-parser '[a@1 b="x = y"]')"
seen 'glossy: quotes' '[{"a@1":{"b":"say \"hi\""}},"text"]' "$(node read.js glossy "$QUOTE")"
seen 'glossy: no parameters' '[{},"text"]' "$(node read.js glossy '[a@1]')"
seen 'glossy: x = y' '[{"a@1":{"b":"x = y"}},"text"]' "$(node read.js glossy '[a@1 b="x = y"]')"
