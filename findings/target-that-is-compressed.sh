#!/usr/bin/env bash
# _sip._udp.a.example. SRV 1 2 3 b.a.example.
#
# RFC 2782: names are not compressed in the target of an SRV record. RFC 3597, section 4: types beyond those of RFC 1035 have no
# compressed names, so that programs which do not know them may copy the bytes.
# Guess: libraries that write SRV records write the target in full.
# Seen: dns2 3.0.0 and native-dns-packet 0.1.1 (npm) write a pointer into the message for the end of the target. dnspython 2.9.2
# (Python) writes the name in full, and so does dns-packet 5.6.1 (npm).
# A server in between that copies the bytes of the record into another message gives another target, or a broken one.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install dnspython==2.9.2
npm_install dns2@3.0.0 native-dns-packet@0.1.1 dns-packet@5.6.1
message=$(v/bin/python -c '
import dns.message, dns.rrset
answer = dns.message.make_response(dns.message.make_query("_sip._udp.a.example", "SRV"))
answer.answer.append(dns.rrset.from_text("_sip._udp.a.example.", 60, "IN", "SRV", "1 2 3 b.a.example."))
print(answer.to_wire().hex())')
cat >write.js <<'JS'
const [library, text] = process.argv.slice(2);
const message = Buffer.from(text, "hex");
const read = require(library);
let written;
if (library === "dns2") written = read.Packet.parse(message).toBuffer();
else if (library === "dns-packet") written = read.encode(read.decode(message));
else {
    written = Buffer.alloc(512);
    written = written.subarray(0, read.write(written, read.parse(message)));
}
console.log(written.toString("hex").slice(-2 * (written.length - written.lastIndexOf(Buffer.from([0, 1, 0, 2, 0, 3])) - 6)));
JS
seen 'dnspython' 01620161076578616d706c6500 "${message##*000100020003}"
seen 'dns-packet' 01620161076578616d706c6500 "$(node write.js dns-packet "$message")"
for library in dns2 native-dns-packet; do
    seen "$library" 0162c016 "$(node write.js $library "$message")"
done
