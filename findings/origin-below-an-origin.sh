#!/usr/bin/env bash
# $ORIGIN example.
# $ORIGIN sub
# a A 192.0.2.1
#
# RFC 1035, section 5.1: a name in a zone file that does not end with a dot is below the origin; $ORIGIN takes a name, and
# nothing exempts it from that.
# Guess: each reader of zone files gives a.sub.example.
# Seen: ldns-read-zone of ldns 1.8.3 gives a.sub., a name outside the zone, without an error. NSD 4.6.1 refuses the line. BIND
# and dnspython 2.9.2 (Python) give a.sub.example.
# A zone that is signed with the tools of ldns loses its part behind such a line.
# shellcheck disable=SC2016 # words of zone files
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

debian_install ldnsutils=1.8.3-1+b1 libldns3=1.8.3-1+b1 nsd libevent-2.1-7 libprotobuf-c1 libfstrm0
pip_install dnspython==2.9.2
# ask TOOL ORIGIN: the name that the tool gives to a record behind $ORIGIN, or its error
ask() {
    printf '$ORIGIN example.\n$TTL 60\n@ SOA ns.b. a.b. 1 2 3 4 5\n@ NS ns.b.\n$ORIGIN %s\na A 192.0.2.1\n' "$2" >zone
    case $1 in
    ldns) root/usr/bin/ldns-read-zone zone 2>&1 | awk '$4 == "A" { print $1 }' ;;
    nsd) root/usr/sbin/nsd-checkzone example. zone 2>&1 | sed -n -e 's/.*zone:5: //p' -e 's/^zone.*is ok/ok/p' ;;
    dnspython) v/bin/python -c '
import dns.zone
zone = dns.zone.from_file("zone", "example.", relativize=False)
print(*(name for name, _, _ in zone.iterate_rdatas("A")))' ;;
    esac
}
root/usr/sbin/nsd-checkzone -h 2>&1 | grep Version
seen 'ldns: absolute' a.sub.example. "$(ask ldns sub.example.)"
seen 'ldns: relative' a.sub. "$(ask ldns sub)"
seen 'NSD: absolute' ok "$(ask nsd sub.example.)"
seen 'NSD: relative' '$ORIGIN directive requires absolute domain name' "$(ask nsd sub)"
seen 'dnspython: relative' a.sub.example. "$(ask dnspython sub)"
