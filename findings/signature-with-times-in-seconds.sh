#!/usr/bin/env bash
# a RRSIG A 8 2 60 1709251200 1706745600 1 example. AAAA
#
# RFC 4034, section 3.2: the two times of a signature stand as YYYYMMDDHHmmSS or as seconds since 1970, which are told apart
# by their length.
# Guess: servers that read signed zones read both.
# Seen: NSD 4.6.1 refuses the seconds, "date and time is expected". ldns 1.8.3, by the same makers, and dnspython 2.9.2
# (Python) read both.
# A signer that writes what an RFC allows has no secondary of this kind.
# shellcheck disable=SC2016 # words of zone files
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

debian_install ldnsutils=1.8.3-1+b1 libldns3=1.8.3-1+b1 nsd libevent-2.1-7 libprotobuf-c1 libfstrm0
pip_install dnspython==2.9.2
# ask TOOL TIMES: what the tool says about a zone with this signature
ask() {
    printf '$ORIGIN example.\n$TTL 60\n@ SOA ns.b. a.b. 1 2 3 4 5\n@ NS ns.b.\na RRSIG A 8 2 60 %s 1 example. AAAA\n' "$2" >zone
    case $1 in
    ldns) root/usr/bin/ldns-read-zone zone 2>&1 | sed -n 's/.*RRSIG\t//p' | cut -d' ' -f5,6 ;;
    nsd) root/usr/sbin/nsd-checkzone example. zone 2>&1 | sed -n -e 's/.*zone:5: //p' -e 's/^zone.*is ok/ok/p' ;;
    dnspython) v/bin/python -c '
import dns.zone
data = dns.zone.from_file("zone", "example.").get_rdataset("a", "RRSIG", "A")[0]
print(*str(data).split()[4:6])' ;;
    esac
}
dates='20240301000000 20240201000000' seconds='1709251200 1706745600'
root/usr/sbin/nsd-checkzone -h 2>&1 | grep Version
seen 'NSD: dates' ok "$(ask nsd "$dates")"
seen 'NSD: seconds' 'date and time is expected' "$(ask nsd "$seconds")"
seen 'ldns: seconds' "$dates" "$(ask ldns "$seconds")"
seen 'dnspython: seconds' "$dates" "$(ask dnspython "$seconds")"
