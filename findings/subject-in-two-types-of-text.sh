#!/usr/bin/env bash
# a subject with the name "Zoë Ω" in UTF8String, and the same in BMPString
#
# RFC 5280, section 4.1.2.4: new certificates have UTF8String or PrintableString in subjects; older ones may have
# BMPString, of two bytes a character.
# Guess: libraries read the first one, and may be wrong in the second.
# Seen: node-forge 1.4.3 (npm) is wrong in the first: it gives the bytes of UTF8String as if each was a character, and
# reads BMPString. jsrsasign 11.1.5 (npm) reads UTF8String, and gives U+06A9, a letter of Arabic, in place of U+03A9 of
# BMPString. asn1crypto 1.5.1 (Python) and Node 20 itself read both.
# A name that a program on node-forge shows or compares is another one than the one that the certificate was issued for.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install cryptography==50.0.2 asn1crypto==1.5.1
npm_install node-forge@1.4.3 jsrsasign@11.1.5
cat >certify.py <<'PY'
import datetime, sys
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.name import _ASN1Type
key = rsa.generate_private_key(65537, 2048)
for kind in "UTF8String", "BMPString":
    common_name = x509.NameAttribute(x509.NameOID.COMMON_NAME, "Zoë Ω", _type=_ASN1Type[kind])
    name = x509.Name([common_name])
    begin = datetime.datetime(2026, 1, 1)
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(1).not_valid_before(begin).not_valid_after(begin.replace(year=2036))
    with open(kind, "wb") as file:
        file.write(builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
PY
v/bin/python certify.py
cat >read.py <<'PY'
import sys
from asn1crypto import pem, x509
with open(sys.argv[1], "rb") as file:
    print(x509.Certificate.load(pem.unarmor(file.read())[2]).subject.native["common_name"])
PY
cat >read.js <<'JS'
const [library, file] = process.argv.slice(2);
const text = require("fs").readFileSync(file, "utf8");
if (library === "node-forge") {
    console.log(require("node-forge").pki.certificateFromPem(text).subject.getField("CN").value);
} else if (library === "jsrsasign") {
    const certificate = new (require("jsrsasign").X509)();
    certificate.readCertPEM(text);
    console.log(certificate.getSubject().array[0][0].value);
} else {
    console.log(new (require("crypto").X509Certificate)(text).subject.slice(3));
}
JS
seen 'node-forge: UTF8String' 'ZoÃ« Î©' "$(node read.js node-forge UTF8String)"
seen 'node-forge: BMPString' 'Zoë Ω' "$(node read.js node-forge BMPString)"
seen 'jsrsasign: UTF8String' 'Zoë Ω' "$(node read.js jsrsasign UTF8String)"
seen 'jsrsasign: BMPString' 'Zoë ک' "$(node read.js jsrsasign BMPString)"
for kind in UTF8String BMPString; do
    seen "asn1crypto: $kind" 'Zoë Ω' "$(v/bin/python read.py $kind)"
    seen "Node: $kind" 'Zoë Ω' "$(node read.js node $kind)"
done
