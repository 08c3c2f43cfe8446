#!/usr/bin/env bash
# 06 06 88 37 03 86 48 00: the object identifier 2.999.3.840.0
#
# X.690, section 8.19: the first number of the encoding is 40 times the first arc plus the second; only below arc 2 may the
# second exceed 39, so that 1079, 88 37, is 2.999. The number may take more than one byte.
# Guess: libraries for BER know it, as 2.16.840, of the same kind, is in many certificates, if in one byte.
# Seen: x690 1.0.0.post1 (Python), asn1 0.2.6 and asn1-ber 1.2.2 (npm) take the first byte alone for both arcs: 3.16.55...
# and 26.39... asn1-ber writes 2.999.3 as 37 03, and asn1 refuses to. asn1 3.3.0, pyasn1 0.6.5 (Python) and asn1js 4.0.0
# (npm) are as guessed.
# A table of SNMP or of certificates that is keyed by such numbers misses them.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install x690==1.0.0.post1 asn1==3.3.0 pyasn1==0.6.5
npm_install asn1@0.2.6 asn1-ber@1.2.2 asn1js@4.0.0
python() {
    v/bin/python -c '
import sys
library, encoding = sys.argv[1], bytes.fromhex(sys.argv[2])
if library == "x690":
    from x690 import decode
    print(decode(encoding)[0].pythonize())
elif library == "asn1":
    import asn1
    decoder = asn1.Decoder()
    decoder.start(encoding)
    print(decoder.read()[1])
else:
    from pyasn1.codec.ber.decoder import decode
    print(decode(encoding)[0])' "$@"
}
js() {
    node -p '
        const library = require(process.argv[1]);
        const encoding = Buffer.from(process.argv[2], "hex");
        library.fromBER?.(encoding).result.valueBlock.toString() ?? new library.Ber.Reader(encoding).readOID()' "$@"
}
# row HEX EXPECTED OF_X690 OF_ASN1_AND_ASN1_BER_OF_NPM
row() {
    seen "asn1 of Python: $2" "$2" "$(python asn1 "$1")"
    seen "pyasn1: $2" "$2" "$(python pyasn1 "$1")"
    seen "asn1js: $2" "$2" "$(js asn1js "$1")"
    seen "x690: $2" "$3" "$(python x690 "$1")"
    seen "asn1 of npm: $2" "$4" "$(js asn1 "$1")"
    seen "asn1-ber: $2" "$4" "$(js asn1-ber "$1")"
}
row 06022a03 1.2.3 1.2.3 1.2.3
row 0606883703864800 2.999.3.840.0 3.16.55.3.840.0 26.39.3.840.0
seen 'asn1-ber writes 2.999.3' 06023703 "$(node -p '
    const writer = new (require("asn1-ber").Ber.Writer)();
    writer.writeOID("2.999.3");
    writer.buffer.toString("hex")')"
seen 'asn1 of npm writes 2.999.3' refused "$(node -p '
    const writer = new (require("asn1").Ber.Writer)();
    try { writer.writeOID("2.999.3"); } catch { "refused"; }')"
