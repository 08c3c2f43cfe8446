#!/usr/bin/env bash
# logger.info("m", { "user id": 1 }), and appName: "my server", as syslog
#
# RFC 5424, section 6.3.3: the name of a parameter is 1 to 32 printable letters of ASCII, without blanks, equal signs, quotes and brackets;
# section 6.2.5: nor has the name of a program blanks, and at most 48 letters.
# Guess: a library that writes such messages leaves other names out, or changes them, as it escapes values.
# Seen: @logtape/syslog 1.3.10 (npm) writes all three as they are, the values with backslashes. syslog-rfc5424-parser 0.3.2 (Python) refuses
# such a message for a parameter, and gives the second word of a program for its process.
# A message with a property of two words, which is usual in JSON, is lost as a whole.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install @logtape/logtape@1.3.10 @logtape/syslog@1.3.10
pip_install syslog-rfc5424-parser==0.3.2
cat >write.mjs <<'JS'
import dgram from "dgram";
import { configure, dispose, getLogger } from "@logtape/logtape";
import { getSyslogSink } from "@logtape/syslog";

const server = dgram.createSocket("udp4").bind(0, "127.0.0.1");
await new Promise((resolve) => server.on("listening", resolve));
const [appName, properties] = process.argv.slice(2);
const options = { hostname: "127.0.0.1", port: server.address().port, protocol: "udp", syslogHostname: "h", processId: "1" };
const sink = getSyslogSink({ ...options, appName, includeStructuredData: true, structuredDataId: "x@1" });
await configure({
    sinks: { sink },
    loggers: [{ category: "c", sinks: ["sink"] }, { category: ["logtape", "meta"], sinks: [] }],
});
const message = new Promise((resolve) => server.on("message", resolve));
getLogger("c").info("m", JSON.parse(properties));
console.log(String(await message).replace(/ \S+Z /, " TIME "));
server.close();
await dispose();
JS
read_python() {
    sed 's/ TIME / 2026-11-29T08:00:00Z /' | v/bin/python -c '
import sys
from syslog_rfc5424_parser import ParseError, SyslogMessage
try:
    read = SyslogMessage.parse(sys.stdin.read().rstrip("\n"))
    print(read.appname, read.procid, *(name for element in read.sd.values() for name in element))
except ParseError:
    print("refused")'
}
# both PROGRAM PROPERTIES WRITTEN READ
both() {
    local written
    written=$(node write.mjs "$1" "$2")
    seen "$1 $2" "$3" "$written"
    seen 'read' "$4" "$(read_python <<<"$written")"
}
both a '{"k":"\"]"}' '<134>1 TIME h a 1 - [x@1 k="\"\]"] m' 'a 1 k'
both a '{"user id":1}' '<134>1 TIME h a 1 - [x@1 user id="1"] m' refused
both a '{"e=f":1}' '<134>1 TIME h a 1 - [x@1 e=f="1"] m' refused
both 'my server' '{}' '<134>1 TIME h my server 1 - - m' 'my server'
