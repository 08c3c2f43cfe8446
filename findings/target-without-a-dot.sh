#!/usr/bin/env bash
# b IN CNAME a, and a 1h IN A 192.0.2.1, within $ORIGIN example.
#
# RFC 1035, section 5.1: a name without a dot at its end is relative to the origin, in the data as well. The times of BIND, 1h
# for an hour, are in most zone files.
# Guess: a reader of zone files of BIND, which makes a.example. of the owner a, makes it of the target, too.
# Seen: BindAuthority of Twisted 26.10.0 (Python) gives the target a, of no zone, for CNAME and MX, and takes 1h for the owner of
# the record. It cuts a quoted text at its blank, and keeps the quotes. It reads a time in seconds. dnspython 2.9.2
# (Python) reads all of them as meant.
# A server on it answers with names that do not exist.
# shellcheck disable=SC2016 # words of zone files
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install twisted==26.10.0 dnspython==2.9.2
cat >read.py <<'PY'
import sys
library, line = sys.argv[1:]
with open("zone", "w") as file:
    file.write(f"$ORIGIN example.\n@ 60 IN SOA ns.b. host.b. 1 2 3 4 5\n{line}\n")
if library == "twisted":
    from twisted.names.authority import BindAuthority
    for owner, records in BindAuthority("zone").records.items():
        for record in records:
            kind = type(record).__name__
            if kind == "Record_A":
                print(owner.decode(), record.dottedQuad())
            elif kind == "Record_TXT":
                print(owner.decode(), record.data)
            elif kind != "Record_SOA":
                print(owner.decode(), record.name)
else:
    import dns.rdatatype, dns.zone
    for owner, _, data in dns.zone.from_file("zone", "example.", relativize=False, check_origin=False).iterate_rdatas():
        if data.rdtype != dns.rdatatype.SOA:
            print(owner, data)
PY
read_line() {
    v/bin/python read.py "$@"
}
seen 'Twisted: A, 60' 'a.example 192.0.2.1' "$(read_line twisted 'a 60 IN A 192.0.2.1')"
seen 'Twisted: A, 1h' '1h. 192.0.2.1' "$(read_line twisted 'a 1h IN A 192.0.2.1')"
seen 'Twisted: CNAME' 'b.example a' "$(read_line twisted 'b 60 IN CNAME a')"
seen 'Twisted: MX' 'b.example a' "$(read_line twisted 'b 60 IN MX 10 a')"
seen 'Twisted: TXT' "t.example [b'\"x', b'y\"']" "$(read_line twisted 't 60 IN TXT "x y"')"
seen 'dnspython: A, 1h' 'a.example. 192.0.2.1' "$(read_line dnspython 'a 1h IN A 192.0.2.1')"
seen 'dnspython: CNAME' 'b.example. a.example.' "$(read_line dnspython 'b 60 IN CNAME a')"
seen 'dnspython: TXT' 't.example. "x y"' "$(read_line dnspython 't 60 IN TXT "x y"')"
