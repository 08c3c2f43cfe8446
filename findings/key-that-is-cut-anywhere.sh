#!/usr/bin/env bash
# a DNSKEY 257 3 13 mdsss ...
#
# RFC 4034, section 2.2: blanks are allowed within the text in base64 of a key; section 5.3 says the same of the digits of a
# DS record. RFC 3597, section 5, lets the digits of \# be several words. None of them says where the blanks may be.
# Guess: programs that read zone files take the words together, and read them then.
# Seen: Knot 3.2.6 reads each word alone: a key that is not cut behind a multiple of 4 letters is "invalid Base64
# character", and digits that are not cut in pairs are "invalid hexadecimal character". NSD 4.6.1 and dnspython 2.9.2
# (Python) read them.
# The files of BIND and ldns are cut so that it does not show; those of people, at the width of a terminal, are not.
# shellcheck disable=SC2016 # words of zone files
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
KEY=mdsswUyr3DPW132mOi8V9xESWE8jTo0dxCjjnopKl+GqJxpVXckHAeF+KkxLbxILfDLUT0rAK9iUzy1L53eKGQ==
DIGEST=2BB183AF5F22588179A53B0A98631FAD1A292118

debian_install knot-dnssecutils libknot13 libdnssec9 libzscanner4 liblmdb0 libbpf1 libxdp1 liburcu8 \
    nsd libevent-2.1-7 libprotobuf-c1 libfstrm0
pip_install dnspython==2.9.2
# ask TOOL DATA: what it says about a zone with this record; Knot says nothing of one that is right
ask() {
    printf '$TTL 60\n@ SOA ns.b. a.b. 1 2 3 4 5\n@ NS ns.b.\na %s\n' "$2" >zone
    case $1 in
    knot) root/usr/bin/kzonecheck -v -d off -o example. zone 2>&1 | sed -n 's/.*line 4 (\(.*\))$/\1/p' ;;
    nsd) root/usr/sbin/nsd-checkzone example. zone 2>/dev/null | sed -n 's/.*is ok/ok/p' ;;
    dnspython) v/bin/python -c '
import dns.zone
for name, data in dns.zone.from_file("zone", "example.").items():
    if str(name) == "a":
        print(data.rdatasets[0][0].to_wire().hex()[-8:])' ;;
    esac
}
seen 'Knot: in one word' '' "$(ask knot "DNSKEY 257 3 13 $KEY")"
seen 'Knot: behind 8 letters' '' "$(ask knot "DNSKEY 257 3 13 ${KEY::8} ${KEY:8}")"
seen 'Knot: behind 5 letters' 'invalid Base64 character' "$(ask knot "DNSKEY 257 3 13 ${KEY::5} ${KEY:5}")"
seen 'NSD: behind 5 letters' ok "$(ask nsd "DNSKEY 257 3 13 ${KEY::5} ${KEY:5}")"
seen 'dnspython: behind 5 letters' e7778a19 "$(ask dnspython "DNSKEY 257 3 13 ${KEY::5} ${KEY:5}")"
seen 'Knot: digits in pairs' '' "$(ask knot "DS 60485 5 1 ${DIGEST::4} ${DIGEST:4}")"
seen 'Knot: digits not in pairs' 'invalid hexadecimal character' "$(ask knot "DS 60485 5 1 ${DIGEST::5} ${DIGEST:5}")"
seen 'NSD: digits not in pairs' ok "$(ask nsd "DS 60485 5 1 ${DIGEST::5} ${DIGEST:5}")"
seen 'dnspython: digits not in pairs' 1a292118 "$(ask dnspython "DS 60485 5 1 ${DIGEST::5} ${DIGEST:5}")"
seen 'Knot: \#' 'invalid hexadecimal character' "$(ask knot 'A \# 4 c00 00201')"
seen 'NSD: \#' ok "$(ask nsd 'A \# 4 c00 00201')"
seen 'dnspython: \#' c0000201 "$(ask dnspython 'A \# 4 c00 00201')"
