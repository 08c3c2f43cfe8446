#!/usr/bin/env bash
# w IN A 192.0.2.1
#   IN AAAA 2001:db8::1
#
# RFC 1035, section 5.1: a line that begins with a blank belongs to the owner of the last one; the class may stand
# before the time or after it, and words are in any case.
# Guess: a reader of zone files gives the address of IPv6 to w, and knows both orders.
# Seen: dns-zonefile 0.3.2 (npm) gives it to the zone itself, @. It drops a line whose time is after the class, one with
# class and type in small letters, and one of a type that it does not know, all without an error. dnspython 2.9.2
# (Python) reads each of them.
# A check that compares such a reading with the answers of a name server reports hosts that are there as missing.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

cat >a.zone <<'ZONE'
$ORIGIN a.example.
$TTL 60
@ IN SOA ns.a.example. host.a.example. 1 2 3 4 5
w IN A 192.0.2.1
  IN AAAA 2001:db8::1
x IN 30 A 192.0.2.2
y 30 in a 192.0.2.3
z 30 IN HTTPS 1 . alpn=h2
ZONE
npm_install dns-zonefile@0.3.2
cat >read.mjs <<'JS'
import fs from "node:fs";
import zonefile from "dns-zonefile";
const { a, aaaa, https } = zonefile.parse(fs.readFileSync("a.zone", "utf8"));
for (const [type, records] of Object.entries({ a, aaaa, https })) {
    console.log(type, (records ?? []).map((record) => record.name).join(" ") || "none");
}
JS
seen 'dns-zonefile' 'a w, aaaa @, https none' "$(node read.mjs | paste -sd , | sed 's/,/, /g')"

pip_install dnspython==2.9.2
cat >read.py <<'PY'
import dns.zone
zone = dns.zone.from_file("a.zone", check_origin=False)
for type in "A", "AAAA", "HTTPS":
    print(type.lower(), *(name for name, _ in zone.iterate_rdatasets(type)))
PY
seen 'dnspython' 'a w x y, aaaa w, https z' "$(v/bin/python read.py | paste -sd , | sed 's/,/, /g')"
