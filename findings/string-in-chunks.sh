#!/usr/bin/env bash
# 7f 65 73747265 61 64 6d 696e67 ff: a string of CBOR in two chunks
#
# RFC 8949, section 3.2.3: a string of indefinite length is the chunks between 7f and ff, joined, and 5f begins one of
# bytes. Appendix A has both as examples. Writers use it who do not know the length yet.
# Guess: decoders that read arrays and maps of indefinite length read strings of that kind.
# Seen: cbor-x 1.6.9 and cbor-sync 1.0.4 (npm) refuse strings in chunks, and read such arrays and maps. cbor 10.0.12 and
# cbor-js 0.1.0 (npm) and cbor2 5.9.0 (Python) read all of them.
# An answer in CBOR that is streamed should have chunks in arrays alone.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install cbor-x@1.6.9 cbor-sync@1.0.4 cbor@10.0.12 cbor-js@0.1.0
pip_install cbor2==5.9.0
read_with() {
    node -e '
        const [library, text] = process.argv.slice(1);
        const bytes = Buffer.from(text, "hex");
        try {
            const { decode, decodeFirstSync } = require(library);
            const value = decodeFirstSync?.(bytes) ?? decode(library === "cbor-js" ? new Uint8Array(bytes).buffer : bytes);
            console.log(value instanceof Uint8Array ? Buffer.from(value).toString("hex") : JSON.stringify(value));
        } catch { console.log("refused"); }' "$@"
}
# row WHAT HEX VALUE OF_CBOR_X OF_CBOR_SYNC
row() {
    seen "cbor: $1" "$3" "$(read_with cbor "$2")"
    seen "cbor-js: $1" "$3" "$(read_with cbor-js "$2")"
    seen "cbor-x: $1" "$4" "$(read_with cbor-x "$2")"
    seen "cbor-sync: $1" "$5" "$(read_with cbor-sync "$2")"
}
row array 9f0102ff '[1,2]' '[1,2]' '[1,2]'
row map bf616101ff '{"a":1}' '{"a":1}' '{"a":1}'
row string 7f657374726561646d696e67ff '"streaming"' refused refused
row bytes 5f42010243030405ff 0102030405 refused refused
seen 'cbor2: string' streaming \
    "$(v/bin/python -c 'import cbor2; print(cbor2.loads(bytes.fromhex("7f657374726561646d696e67ff")))')"
