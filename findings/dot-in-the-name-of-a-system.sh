#!/usr/bin/env bash
# a HINFO i686 Linux-6.1
#
# RFC 1035, section 5.1: a text without blanks in it needs no quotes. Section 3.3.14 has HINFO of two such texts.
# Guess: a server that reads TXT without quotes reads HINFO and NAPTR without them, too, dots or not.
# Seen: NSD 4.6.1 refuses a dot in such a text of HINFO, NAPTR or ISDN, "syntax error", and reads one in a text of TXT.
# In quotes, or without a dot, it reads all of them. Knot 3.2.6 and dnspython 2.9.2 (Python) read them without quotes.
# github.com/miekg/dns 1.1.73 (Go) refuses NAPTR without quotes, dots or not, and reads HINFO.
# The whole zone is refused.
# shellcheck disable=SC2016 # words of zone files
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

debian_install knot-dnssecutils libknot13 libdnssec9 libzscanner4 liblmdb0 libbpf1 libxdp1 liburcu8 \
    nsd libevent-2.1-7 libprotobuf-c1 libfstrm0
pip_install dnspython==2.9.2
cat >go.mod <<'GO'
module finding
go 1.26
require github.com/miekg/dns v1.1.73
GO
cat >main.go <<'GO'
package main

import (
	"fmt"
	"os"

	"github.com/miekg/dns"
)

func main() {
	_, err := dns.NewRR("a. 60 IN " + os.Args[1])
	fmt.Println(err)
}
GO
go mod tidy 2>/dev/null
# ask TOOL DATA: ok, or what it says about a zone with this record
ask() {
    printf '$TTL 60\n@ SOA ns.b. a.b. 1 2 3 4 5\n@ NS ns.b.\na %s\n' "$2" >zone
    case $1 in
    nsd) root/usr/sbin/nsd-checkzone example. zone 2>&1 | sed -n -e 's/.*zone:4: //p' -e 's/^zone.*is ok/ok/p' ;;
    knot) root/usr/bin/kzonecheck -o example. zone 2>&1 && echo ok ;;
    python) v/bin/python -c '
import dns.zone
print(dns.zone.from_file("zone", "example.")["a"].rdatasets[0][0])' ;;
    go) go run . "$2" ;;
    esac
}
seen 'NSD: TXT a.b' ok "$(ask nsd 'TXT a.b')"
seen 'NSD: HINFO i686 Linux' ok "$(ask nsd 'HINFO i686 Linux')"
seen 'NSD: HINFO i686 Linux-6.1' 'syntax error' "$(ask nsd 'HINFO i686 Linux-6.1')"
seen 'NSD: HINFO i686 "Linux-6.1"' ok "$(ask nsd 'HINFO i686 "Linux-6.1"')"
seen 'NSD: NAPTR, a.b' 'syntax error' "$(ask nsd 'NAPTR 1 1 s a.b "" .')"
seen 'NSD: NAPTR, ab' ok "$(ask nsd 'NAPTR 1 1 s ab "" .')"
seen 'Knot: HINFO' ok "$(ask knot 'HINFO i686 Linux-6.1')"
seen 'Knot: NAPTR' ok "$(ask knot 'NAPTR 1 1 s a.b "" .')"
seen 'dnspython: HINFO' '"i686" "Linux-6.1"' "$(ask python 'HINFO i686 Linux-6.1')"
seen 'dnspython: NAPTR' '1 1 "s" "a.b" "" .' "$(ask python 'NAPTR 1 1 s a.b "" .')"
seen 'miekg/dns: HINFO' '<nil>' "$(ask go 'HINFO i686 Linux-6.1')"
seen 'miekg/dns: NAPTR, in quotes' '<nil>' "$(ask go 'NAPTR 1 1 "s" "ab" "" .')"
seen 'miekg/dns: NAPTR' 'dns: bad NAPTR Flags: "s" at line: 1:21' "$(ask go 'NAPTR 1 1 s ab "" .')"
