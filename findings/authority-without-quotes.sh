#!/usr/bin/env bash
# a CAA 0 issue ca.example
#
# RFC 8659, section 4.1: the value in a zone file is any text of RFC 1035, in quotes or without. Tags match whatever their
# case is, and the form that one ought to write is in small letters.
# Guess: tools that know CAA read the value without quotes, and a tag in capitals.
# Seen: ldns-read-zone of ldns 1.8.3 refuses the value without quotes. NSD 4.6.1, by the same makers, reads it, and refuses
# the tag ISSUE, unless it comes as bytes, as from a transfer. dnspython 2.9.2 (Python) reads all of them.
# The whole zone is refused for such a record, which another server may have served for years.
# shellcheck disable=SC2016 # words of zone files
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

debian_install ldnsutils=1.8.3-1+b1 libldns3=1.8.3-1+b1 nsd libevent-2.1-7 libprotobuf-c1 libfstrm0
pip_install dnspython==2.9.2
# ask TOOL DATA: what the tool says about a zone with this record
ask() {
    printf '$ORIGIN example.\n$TTL 60\n@ SOA ns.b. a.b. 1 2 3 4 5\n@ NS ns.b.\na CAA %s\n' "$2" >zone
    case $1 in
    ldns) root/usr/bin/ldns-read-zone zone 2>&1 | sed -n -e 's/.*CAA\t//p' -e 's/^Syntax error, //p' ;;
    nsd) root/usr/sbin/nsd-checkzone example. zone 2>&1 | sed -n -e 's/.*zone:5: //p' -e 's/^zone.*is ok/ok/p' ;;
    dnspython) v/bin/python -c '
import dns.zone
print(dns.zone.from_file("zone", "example.").get_rdataset("a", "CAA")[0])' ;;
    esac
}
refused="could not parse the RR's rdata at line 5"
root/usr/sbin/nsd-checkzone -h 2>&1 | grep Version
seen 'ldns: in quotes' '0 issue "ca.example"' "$(ask ldns '0 issue "ca.example"')"
seen 'ldns: without' "$refused" "$(ask ldns '0 issue ca.example')"
seen 'ldns: in capitals' '0 ISSUE "ca.example"' "$(ask ldns '0 ISSUE "ca.example"')"
seen 'NSD: without quotes' ok "$(ask nsd '0 issue ca.example')"
seen 'NSD: in capitals' 'invalid tag ISSUE: contains invalid char I' "$(ask nsd '0 ISSUE "ca.example"')"
seen 'NSD: bytes' ok "$(ask nsd '\# 7 0003494f444141')"
seen 'dnspython: without quotes' '0 issue "ca.example"' "$(ask dnspython '0 issue ca.example')"
seen 'dnspython: in capitals' '0 ISSUE "ca.example"' "$(ask dnspython '0 ISSUE ca.example')"
