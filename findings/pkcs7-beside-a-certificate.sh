#!/usr/bin/env bash
# -----BEGIN PKCS7-----
#
# RFC 7468 has labels for certificates, lists of revoked ones, requests, PKCS7, CMS, keys and attribute certificates;
# section 2: parsers skip text between them.
# Guess: a library whose task is PEM gives an object for each label of this RFC, or says that it does not know one.
# Seen: pem 23.1.0 (Python) drops PKCS7, CMS and ATTRIBUTE CERTIFICATE without an error, as if they were text in between,
# and gives the others. asn1crypto 1.5.1 (Python) gives each with its label.
# A check that counts the objects of a file finds fewer.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install pem==23.1.0 asn1crypto==1.5.1
read_with() {
    v/bin/python -c '
import sys
library, *labels = sys.argv[1:]
text = "".join(f"-----BEGIN {label}-----\nQUJD\n-----END {label}-----\n" for label in labels).encode()
if library == "pem":
    import pem
    print(*(type(found).__name__ for found in pem.parse(text)))
else:
    from asn1crypto import pem
    print(*(label.replace(" ", "") for label, _, _ in pem.unarmor(text, multiple=True)))' "$@"
}
seen 'asn1crypto' 'CERTIFICATE PKCS7 CMS ATTRIBUTECERTIFICATE PUBLICKEY' \
    "$(read_with asn1crypto CERTIFICATE PKCS7 CMS 'ATTRIBUTE CERTIFICATE' 'PUBLIC KEY')"
seen 'pem: those that it knows' 'Certificate CertificateRevocationList CertificateRequest PrivateKey PublicKey' \
    "$(read_with pem CERTIFICATE 'X509 CRL' 'CERTIFICATE REQUEST' 'PRIVATE KEY' 'PUBLIC KEY')"
seen 'pem' 'Certificate PublicKey' \
    "$(read_with pem CERTIFICATE PKCS7 CMS 'ATTRIBUTE CERTIFICATE' 'PUBLIC KEY')"
