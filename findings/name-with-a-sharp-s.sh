#!/usr/bin/env bash
# https://straße.example/
#
# RFC 5892, section 2.6 (IDNA 2008): ß is a letter of its own, so that the name is xn--strae-oqa.example. RFC 3490
# (IDNA 2003) made ss of it.
# Guess: libraries with a release of the last ten years go by the newer one.
# Seen: furl 2.1.4 and asn1crypto 1.5.1 (Python) write strasse.example, a name that somebody else may own. asn1crypto
# does not read the name of a certificate for xn--strae-oqa.example. yarl 1.25.1, hyperlink 21.0.0 and httpx 0.28.1
# (Python) write xn--strae-oqa.example.
# The two go by Python's own codec `idna`, which is the older one.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install furl==2.1.4 asn1crypto==1.5.1 yarl==1.25.1 hyperlink==21.0.0 httpx==0.28.1
cat >write.py <<'PY'
import sys
import furl, httpx, hyperlink, yarl
from asn1crypto.x509 import DNSName
name = sys.argv[2]
address = "https://%s/" % name

def read(name):
    try:
        return DNSName.load(bytes([0x82, len(name)]) + name, tag_type="implicit", tag=2).native
    except UnicodeError as error:
        return error.args[0]

print({
    "furl": lambda: furl.furl(address).netloc,
    "yarl": lambda: yarl.URL(address).raw_host,
    "hyperlink": lambda: hyperlink.parse(address).to_uri().host,
    "httpx": lambda: httpx.URL(address).raw_host.decode(),
    "asn1crypto": lambda: DNSName(name).dump()[2:].decode(),
    "read": lambda: read(name.encode()),
}[sys.argv[1]]())
PY
for library in furl asn1crypto; do
    seen "$library" strasse.example "$(v/bin/python write.py $library straße.example)"
done
seen 'asn1crypto: xn--bcher-kva.example' bücher.example "$(v/bin/python write.py read xn--bcher-kva.example)"
seen 'asn1crypto: xn--strae-oqa.example' 'IDNA does not round-trip' \
    "$(v/bin/python write.py read xn--strae-oqa.example)"
for library in yarl hyperlink httpx; do
    seen "$library" xn--strae-oqa.example "$(v/bin/python write.py $library straße.example)"
done
