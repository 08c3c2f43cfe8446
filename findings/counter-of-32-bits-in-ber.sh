#!/usr/bin/env bash
# 02 05 00 ff ff ff ff: 4294967295 in BER
#
# X.690, section 8.3: integers of any length, in two's complement; a first byte of 0 keeps 32 bits positive. RFC 2578,
# section 7.1.6: a Counter32 goes up to there.
# Guess: a library that parsers of keys build on reads 32 bits without a sign, and writes them.
# Seen: asn1 0.2.6 (npm) refuses to read more than 4 bytes, writes 4294967295 as 02 01 ff, which is -1, and 2147483648 as
# the negative number. asn1-ber 1.2.2 and asn1js 4.0.0 (npm) and asn1 3.3.0 (Python) are as guessed.
# A counter that is past its half becomes negative, without an error.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install asn1@0.2.6 asn1-ber@1.2.2 asn1js@4.0.0
pip_install asn1==3.3.0
BYTES=020500ffffffff
read_with() {
    node -p '
        const reader = new (require(process.argv[1]).Ber.Reader)(Buffer.from(process.argv[2], "hex"));
        try { reader.readInt(); } catch (error) { error.message; }' "$1" $BYTES
}
write_with() {
    node -p '
        const writer = new (require(process.argv[1]).Ber.Writer)();
        writer.writeInt(Number(process.argv[2]));
        writer.buffer.toString("hex")' "$@"
}
seen 'asn1-ber reads it' 4294967295 "$(read_with asn1-ber)"
seen 'asn1js reads it' 4294967295 \
    "$(node -p 'String(require("asn1js").fromBER(Buffer.from(process.argv[1], "hex")).result.toBigInt())' $BYTES)"
seen 'asn1 of Python reads it' 4294967295 "$(v/bin/python -c '
import asn1, sys
decoder = asn1.Decoder()
decoder.start(bytes.fromhex(sys.argv[1]))
print(decoder.read()[1])' $BYTES)"
seen 'asn1 of npm reads it' 'Integer too long: 5' "$(read_with asn1)"
seen 'asn1 of npm writes it' 0201ff "$(write_with asn1 4294967295)"
seen 'asn1-ber writes it' 020500ffffffff "$(write_with asn1-ber 4294967295)"
seen 'asn1 of npm writes 2147483648' 020480000000 "$(write_with asn1 2147483648)"
seen 'asn1-ber writes 2147483648' 02050080000000 "$(write_with asn1-ber 2147483648)"
