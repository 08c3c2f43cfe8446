#!/usr/bin/env bash
# w IN TXT "v=DMARC1; p=none"
#
# RFC 1035, section 5.1: a semicolon begins a comment, except in a quoted string; a line that begins with a blank
# belongs to the owner of the last one. Times with units (1h) are no part of the RFC, and no reader has to know them.
# Guess: each reader of zone files keeps quoted semicolons and knows the owner of the line before.
# Seen: zone-file 1.0.0 (npm) cuts the text at the semicolon, takes the class IN for the name of the second line's
# owner, and reads a time of 1h as one second, all without an error. dnspython 2.9.2 (Python) reads all three as
# meant.
# So the record of a host that a tool checks or copies by this library may differ from that of the name server.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

cat >a.zone <<'ZONE'
$ORIGIN a.example.
$TTL 1h
@ IN SOA ns admin 1 7200 3600 604800 60
w IN TXT "v=DMARC1; p=none"
x IN A 192.0.2.1
  IN A 192.0.2.2
ZONE
npm_install zone-file@1.0.0
zone() {
    node -e '
        const zone = require("zone-file").parseZoneFile(require("fs").readFileSync("a.zone", "utf8"));
        console.log(eval("zone" + process.argv[1]));' "$1"
}
seen 'zone-file: the text of w' v=DMARC1 "$(zone '.txt[0].txt')"
seen 'zone-file: the owner of 192.0.2.1' x "$(zone '.a[0].name')"
seen 'zone-file: the owner of 192.0.2.2' IN "$(zone '.a[1].name')"
seen 'zone-file: a TTL of 1h' 1 "$(zone "['\$ttl']")"

pip_install dnspython==2.9.2
cat >zone.py <<'PY'
import dns.zone
zone = dns.zone.from_file("a.zone", relativize=True, check_origin=False)
text = zone.get_rdataset("w", "TXT")
print(text[0], text.ttl, len(zone.get_rdataset("x", "A")))
PY
seen 'dnspython: text, TTL, addresses of x' '"v=DMARC1; p=none" 3600 2' "$(v/bin/python zone.py)"
