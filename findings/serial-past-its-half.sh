#!/usr/bin/env bash
# SOA ns. m. 2147483648 2 3 4 5
#
# RFC 1035, section 3.3.13: the serial number of a zone has 32 bits without a sign; RFC 1982 counts with it in a circle.
# Guess: a library that reads such a number writes it.
# Seen: native-dns-packet 0.1.1 (npm) reads it, and fails when it writes the message: the value has to be below 2147483648. dns2
# 3.0.0 and dns-packet 5.6.1 (npm) write it.
# A proxy of names on this library has no answer for zones whose numbers are seconds of a far date, or count down from the end.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install dns2@3.0.0 native-dns-packet@0.1.1 dns-packet@5.6.1
cat >write.js <<'JS'
const [library, serial] = process.argv.slice(2);
const soa = { mname: "ns", rname: "m", serial: Number(serial), refresh: 2, retry: 3, expire: 4, minimum: 5 };
const question = { name: "a.example", type: "SOA" };
const source = require("dns-packet").encode({ type: "response", questions: [question], answers: [{ ...question, data: soa }] });
const read = require(library);
let written;
try {
    if (library === "dns2") written = read.Packet.parse(source).toBuffer();
    else if (library === "dns-packet") written = read.encode(read.decode(source));
    else {
        written = Buffer.alloc(512);
        written = written.subarray(0, read.write(written, read.parse(source)));
    }
    console.log(require("dns-packet").decode(written).answers[0].data.serial);
} catch (error) {
    console.log(error.code);
}
JS
for library in dns2 dns-packet; do
    seen "$library: 2147483648" 2147483648 "$(node write.js $library 2147483648)"
done
seen 'native-dns-packet: 2147483647' 2147483647 "$(node write.js native-dns-packet 2147483647)"
seen 'native-dns-packet: 2147483648' ERR_OUT_OF_RANGE "$(node write.js native-dns-packet 2147483648)"
