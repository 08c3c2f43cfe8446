#!/usr/bin/env bash
# a MINFO b. c., and a MB b.
#
# RFC 1035, sections 3.3.3 to 3.3.7: the types MB, MG, MR and MINFO of mailboxes, which are experimental and have never been
# taken back; they are in the registry of types under these names.
# Guess: libraries that know types of this decade know all of RFC 1035.
# Seen: dnspython 2.9.2 (Python) knows their names and not their form: it refuses `MINFO b. c.` in a zone file, and writes those of
# a message as bytes. Knot 3.2.6 knows MINFO, and calls MB, MG and MR unsupported. NSD 4.6.1 and github.com/miekg/dns
# 1.1.73 (Go) read them. Go's library does not know WKS of the same RFC.
# Old zones still have them; a move to another server refuses the whole zone.
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
    nsd) root/usr/sbin/nsd-checkzone example. zone 2>&1 | sed -n -e 's/.*error: zone:4: //p' -e 's/^zone.*is ok/ok/p' ;;
    knot) root/usr/bin/kzonecheck -v -o example. zone 2>&1 | sed -n 's/.*line 4 (\(.*\))$/\1/p' ;;
    python) v/bin/python -c '
import dns.exception, dns.zone
try:
    print(dns.zone.from_file("zone", "example.")["a"].rdatasets[0][0])
except dns.exception.SyntaxError as error:
    print(str(error).split(": ")[1])' ;;
    go) go run . "$2" ;;
    esac
}
seen 'dnspython: MX' '1 b.' "$(ask python 'MX 1 b.')"
for data in 'MINFO b. c.' 'MB b.' 'MG b.' 'MR b.'; do
    seen "dnspython: $data" 'generic rdata does not start with \#' "$(ask python "$data")"
    seen "NSD: $data" ok "$(ask nsd "$data")"
    seen "miekg/dns: $data" '<nil>' "$(ask go "$data")"
done
seen 'dnspython, as bytes' '\# 3 016200' "$(ask python 'MB \# 3 016200')"
seen 'Knot: MINFO b. c.' '' "$(ask knot 'MINFO b. c.')"
for data in 'MB b.' 'MG b.' 'MR b.'; do
    seen "Knot: $data" 'unsupported record type' "$(ask knot "$data")"
done
seen 'NSD: WKS' ok "$(ask nsd 'WKS 192.0.2.1 TCP smtp')"
seen 'miekg/dns: WKS' 'dns: unknown RR type: "WKS" at line: 1:13' "$(ask go 'WKS 192.0.2.1 TCP smtp')"
