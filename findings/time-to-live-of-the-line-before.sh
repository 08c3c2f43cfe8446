#!/usr/bin/env bash
# a 300 A 192.0.2.1
# b A 192.0.2.2
#
# RFC 1035, section 5.1: a time that a line leaves out is the last one that was stated. RFC 2308, section 4, has $TTL for it;
# this zone has none, and its SOA record has 5 for the time of answers that say "no such name".
# Guess: readers of zone files give b the time of a, 300.
# Seen: Net::DNS 1.36 (Perl) gives b 5 seconds, by the SOA record. BIND 9.18 and dnspython 2.9.2 (Python) give 300.
# An old zone without $TTL, read by a tool in Perl, is asked for sixty times as often.
# shellcheck disable=SC2016 # words of zone files
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

debian_install libnet-dns-perl bind9-utils bind9-libs libmaxminddb0 libfstrm0 libprotobuf-c1 libuv1 libxml2 libicu72 \
    libjson-c5 liblmdb0 libnghttp2-14 libjemalloc2
pip_install dnspython==2.9.2
# zone LINE...: a zone file of them
zone() {
    printf '%s\n' "$@" '@ 3600 SOA ns.b. a.b. 1 2 3 4 5' '@ 3600 NS ns.b.' 'a 300 A 192.0.2.1' 'b A 192.0.2.2' >zone
}
perl() {
    command perl -Iroot/usr/share/perl5 -MNet::DNS::ZoneFile -e '
my $zone = Net::DNS::ZoneFile->new("zone", "example.");
while (my $record = $zone->read) { print $record->ttl if $record->owner eq "b.example" }'
}
bind() {
    root/usr/bin/named-compilezone -k ignore -i none -o - example. zone 2>&1 | awk '$1 == "b.example." { print $2 }'
}
python() {
    v/bin/python -c '
import dns.zone
zone = dns.zone.from_file("zone", "example.")
print(zone.get_rdataset("b", "A").ttl)'
}
command perl -Iroot/usr/share/perl5 -MNet::DNS -e 'print "Net::DNS ", Net::DNS->version, "\n"'
root/usr/bin/named-checkzone -v
zone '$TTL 60'
seen 'Net::DNS, with $TTL' 60 "$(perl)"
seen 'BIND, with $TTL' 60 "$(bind)"
zone
seen 'Net::DNS' 5 "$(perl)"
seen 'BIND' 300 "$(bind)"
seen 'dnspython' 300 "$(python)"
