#!/usr/bin/env bash
# a CDS 12345 8 2 E3B0C44298FC1C149AFBF4C8996FB92427AE41E4649B934CA495991B7852B855
#
# RFC 7344, section 3.1: the data of CDS are those of DS: two bytes of the key tag, one of the algorithm, one of the type
# of digest, and the digest. RFC 3597, section 5: data that have no format of their own stand after \# and a length.
# Guess: a reader of zone files that does not know the format of a type refuses the record.
# Seen: dnslib 0.9.26 (Python) takes the last word for the whole data, as hexadecimal, and drops those before it without an
# error. So it does with ZONEMD and, where the base64 looks like hexadecimal, with CERT, DHCID and OPENPGPKEY. It reads DS
# as meant; dnspython 2.9.2 (Python) reads all of them.
# A test server for names on this library gives wrong records; the form with \# is safe with both.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install dnslib==0.9.26 dnspython==2.9.2
cat >read.py <<'PY'
import sys
import dns.rdata, dnslib
library, kind, data = sys.argv[1:]
if library == "dnslib":
    buffer = dnslib.DNSBuffer()
    dnslib.RR.fromZone(f"a.example. 60 IN {kind} {data}")[0].rdata.pack(buffer)
    print(bytes(buffer.data).hex())
else:
    print(dns.rdata.from_text("IN", kind, data).to_wire().hex())
PY
DIGEST=e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
seen 'dnslib: DS' "30390802$DIGEST" "$(v/bin/python read.py dnslib DS "12345 8 2 $DIGEST")"
seen 'dnslib: CDS' "$DIGEST" "$(v/bin/python read.py dnslib CDS "12345 8 2 $DIGEST")"
seen 'dnslib: CDS \# 36' "30390802$DIGEST" "$(v/bin/python read.py dnslib CDS "\\# 36 30390802$DIGEST")"
seen 'dnslib: DHCID ABCD' abcd "$(v/bin/python read.py dnslib DHCID ABCD)"
seen 'dnspython: CDS' "30390802$DIGEST" "$(v/bin/python read.py dnspython CDS "12345 8 2 $DIGEST")"
seen 'dnspython: DHCID ABCD' 001083 "$(v/bin/python read.py dnspython DHCID ABCD)"
