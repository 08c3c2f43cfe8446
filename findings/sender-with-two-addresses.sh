#!/usr/bin/env bash
# <34>1 - h a p m [origin ip="192.0.2.1" ip="192.0.2.129"] text
#
# RFC 5424, section 6.3.3: the same parameter may come several times in an element; section 7.2 has this very element
# for the addresses of a sender. Names with @ are for everybody, and those without for the registry, which the RFC
# begins with timeQuality, origin and meta.
# Guess: parsers of syslog messages give both addresses, under origin.
# Seen: glossy 0.1.7 (npm) keeps the last one alone. nsyslog-parser 0.10.1 (npm) keeps the last one in an element with
# @ in its name; it does not know one without, drops its name, and takes its parameters for a part of the message.
# A collector on them looks for a host by an address that is gone from its records.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install glossy@0.1.7 nsyslog-parser@0.10.1
cat >read.js <<'JS'
const [library, name] = process.argv.slice(2);
const line = `<34>1 - h a p m [${name} ip="192.0.2.1" ip="192.0.2.129"] text`;
const found = library === "glossy" ? require("glossy").Parse.parse(line) : require("nsyslog-parser")(line);
console.log(JSON.stringify([found.structuredData, found.message]));
JS
seen 'glossy: origin' '[{"origin":{"ip":"192.0.2.129"}},"text"]' "$(node read.js glossy origin)"
seen 'nsyslog-parser: origin' '[[],"ip=\"192.0.2.1\" ip=\"192.0.2.129\"] text"]' \
    "$(node read.js nsyslog-parser origin)"
# shellcheck disable=SC2016 # $id is the library's name
seen 'nsyslog-parser: a@1' '[[{"$id":"a@1","ip":"192.0.2.129"}],"text"]' "$(node read.js nsyslog-parser a@1)"
