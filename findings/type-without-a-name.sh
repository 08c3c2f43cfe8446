#!/usr/bin/env bash
# a. IN NSEC b. A TYPE1234
#
# RFC 3597, section 5: a type without a name of its own is written TYPE and its number; section 3: programs pass such
# types on. RFC 4034, section 4.1.2: this record lists the types that a name has, one bit each.
# Guess: a library that knows no name of a type writes and reads TYPE1234, or fails at it.
# Seen: dns-packet 5.6.1 (npm) writes type 0 for TYPE1234, without an error, in a list as in a question. It has a form of
# its own, UNKNOWN_1234, which dnspython 2.9.2 (Python) does not read. dnspython writes and reads TYPE1234.
# A list of types from another tool loses the newest of them, and a question asks for another type.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
BITS=000140041b000000000000000000000000000000000000000000000000000020

npm_install dns-packet@5.6.1
js() {
    node -p '
        const packet = require("dns-packet");
        const [what, ...values] = process.argv.slice(1);
        ({
            read: () => packet.nsec.decode(Buffer.from("0023016200" + values[0], "hex"), 0).rrtypes.join(" "),
            list: () => packet.nsec.encode({ nextDomain: "b", rrtypes: values }).subarray(5).toString("hex"),
            ask: () => packet.encode({ questions: [{ name: "a", type: values[0] }] }).subarray(15, 17).toString("hex"),
        })[what]()' "$@"
}
pip_install dnspython==2.9.2
python() {
    v/bin/python -c '
import dns.rdata, sys
try:
    print(dns.rdata.from_text("IN", "NSEC", f"b. A {sys.argv[1]}").to_wire().hex()[6:])
except Exception as error:
    print(error)' "$1"
}
seen 'dnspython writes TYPE1234' $BITS "$(python TYPE1234)"
seen 'dns-packet reads that' 'A UNKNOWN_1234' "$(js read $BITS)"
seen 'dns-packet writes UNKNOWN_1234' $BITS "$(js list A UNKNOWN_1234)"
seen 'dns-packet writes TYPE1234' 0001c0 "$(js list A TYPE1234)"
seen 'dns-packet asks for UNKNOWN_1234' 04d2 "$(js ask UNKNOWN_1234)"
seen 'dns-packet asks for TYPE1234' 0000 "$(js ask TYPE1234)"
seen 'dnspython writes UNKNOWN_1234' 'DNS resource record type is unknown.' "$(python UNKNOWN_1234)"
