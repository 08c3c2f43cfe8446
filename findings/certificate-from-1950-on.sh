#!/usr/bin/env bash
# notBefore: 500101000000Z, as UTCTime
#
# RFC 5280, section 4.1.2.5.1: two digits from 50 on are 1950 to 1999, and those below 2000 to 2049. X.509 has no later
# use for this form, so that a program that wants "valid since ever" writes 1950.
# Guess: each library with a type UTCTime gives 1950.
# Seen: pyasn1 0.6.5 (Python) gives 2050, as strptime of C and Python begins the century at 69. asn1crypto 1.5.1 and
# cryptography 50.0.2 (Python), and Node 20, give 1950.
# By pyasn1 the certificate is not valid for another 24 years.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install pyasn1==0.6.5 pyasn1-modules==0.4.2 asn1crypto==1.5.1 cryptography==50.0.2
cat >read.py <<'PY'
import datetime, sys
from asn1crypto.x509 import Certificate
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from pyasn1.codec.der import decoder
from pyasn1_modules import rfc5280
key = rsa.generate_private_key(65537, 2048)
name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "a")])
begin = datetime.datetime(int(sys.argv[1]), 1, 1)
builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
builder = builder.serial_number(1).not_valid_before(begin).not_valid_after(datetime.datetime(2049, 1, 1))
certificate = builder.sign(key, hashes.SHA256())
encoded = certificate.public_bytes(serialization.Encoding.DER)
with open("a.der", "wb") as file:
    file.write(encoded)
begin = decoder.decode(encoded, asn1Spec=rfc5280.Certificate())[0]["tbsCertificate"]["validity"]["notBefore"]
print(
    begin.getName(),
    "pyasn1", begin.getComponent().asDateTime.year,
    "asn1crypto", Certificate.load(encoded).not_valid_before.year,
    "cryptography", certificate.not_valid_before_utc.year,
)
PY
for year in 1999 2000; do
    seen $year "utcTime pyasn1 $year asn1crypto $year cryptography $year" "$(v/bin/python read.py $year)"
done
seen 1950 'utcTime pyasn1 2050 asn1crypto 1950 cryptography 1950' "$(v/bin/python read.py 1950)"
seen 'Node: 1950' 'Jan  1 00:00:00 1950 GMT' \
    "$(node -p 'new (require("crypto").X509Certificate)(require("fs").readFileSync("a.der")).validFrom')"
