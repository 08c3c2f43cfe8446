#!/usr/bin/env bash
# www IN 300 CNAME web, in a zone file
#
# RFC 1035, section 5.1: the class and the time to live may stand in either order, and both may be left out.
# Guess: readers of zone files know both orders.
# Seen: zonefile-parser 0.1.20 (Python) gives a record of the type `300`, with the data CNAME. zone-file 1.0.0 and
# @fungible-systems/zone-file 2.0.0 (npm) give the record without its time. dnspython 2.9.2 and blockstack-zones-py3 0.19.1
# (Python) read both.
# A zone that another server wrote in this order is not the zone that a tool on these libraries sees.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install zonefile-parser==0.1.20 dnspython==2.9.2 blockstack-zones-py3==0.19.1
npm_install zone-file@1.0.0 @fungible-systems/zone-file@2.0.0
HEAD=$'$ORIGIN a.example.\n$TTL 60\n@ IN SOA ns hostmaster ( 1 2 3 4 5 )\n@ IN NS ns\n'
python() {
    v/bin/python -c '
import sys
library, text = sys.argv[1:]
if library == "zonefile-parser":
    import zonefile_parser
    record = zonefile_parser.parse(text)[-1]
    print(record.ttl, record.rtype)
elif library == "dnspython":
    import dns.zone
    ((_, found),) = dns.zone.from_text(text).iterate_rdatasets("CNAME")
    print(found.ttl, "CNAME")
else:
    import blockstack_zones
    print(blockstack_zones.parse_zone_file(text)["cname"][0]["ttl"], "CNAME")' "$1" "$HEAD$2"$'\n'
}
js() {
    node --input-type=module -e '
        const found = await import(process.argv[1]);
        const { cname } = (found.parseZoneFile ?? found.default.parseZoneFile)(process.argv[2]);
        console.log(cname[0].ttl, "CNAME");' "$1" "$HEAD$2"$'\n'
}
for line in 'www 300 IN CNAME web' 'www IN 300 CNAME web'; do
    seen "dnspython: $line" '300 CNAME' "$(python dnspython "$line")"
    seen "blockstack-zones: $line" '300 CNAME' "$(python blockstack-zones "$line")"
done
LINE='www 300 IN CNAME web'
seen "zonefile-parser: $LINE" '300 CNAME' "$(python zonefile-parser "$LINE")"
seen "zone-file: $LINE" '300 CNAME' "$(js zone-file "$LINE")"
seen "@fungible-systems/zone-file: $LINE" '300 CNAME' "$(js @fungible-systems/zone-file "$LINE")"
LINE='www IN 300 CNAME web'
seen "zonefile-parser: $LINE" '60 300' "$(python zonefile-parser "$LINE")"
seen "zone-file: $LINE" 'undefined CNAME' "$(js zone-file "$LINE")"
seen "@fungible-systems/zone-file: $LINE" 'undefined CNAME' "$(js @fungible-systems/zone-file "$LINE")"
