#!/usr/bin/env bash
# SETTINGS_HEADER_TABLE_SIZE = 0, and then the next header
#
# RFC 7541, section 4.2: an encoder that makes its table smaller has to say so at the beginning of the first header
# after the setting was acknowledged; a decoder takes a header without it for an error (RFC 9113, section 4.3.1).
# Guess: each encoder begins with the byte 20, the size update to 0.
# Seen: hpack.js 2.1.6 (npm) writes a size update only where the new size is not below its first one. With 0 or 100 it
# writes the field alone, to which hpack 4.2.0 (Python), as decoder, answers with an error. hpack writes the byte 20,
# and of two changes both.
# Clients that ask for a small table to save memory lose their connections to a server that stands on hpack.js.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install hpack.js@2.1.6
js() {
    node -p '
        const encoder = require("hpack.js").compressor.create({ table: { maxSize: 4096 } });
        process.argv.slice(1).forEach(size => encoder.updateTableSize(Number(size)));
        encoder.write([{ name: "a", value: "b" }]);
        encoder.read().toString("hex")' "$@"
}
pip_install hpack==4.2.0
encode() {
    v/bin/python -c '
import hpack, sys
encoder = hpack.Encoder()
for size in sys.argv[1:]:
    encoder.header_table_size = int(size)
print(encoder.encode([("a", "b")]).hex())' "$@"
}
# decode SIZE BYTES
decode() {
    v/bin/python -c '
import hpack, sys
decoder = hpack.Decoder()
decoder.max_allowed_table_size = int(sys.argv[1])
try:
    print(*(f"{name}: {value}" for name, value in decoder.decode(bytes.fromhex(sys.argv[2]))))
except hpack.HPACKError as error:
    print(type(error).__name__)' "$@"
}
seen 'hpack.js, without a change' 40811f818f "$(js)"
seen 'hpack.js, of size 4096' 3fe11f40811f818f "$(js 4096)"
seen 'hpack.js, of size 100' 40811f818f "$(js 100)"
seen 'hpack.js, of size 0' 40811f818f "$(js 0)"
seen 'hpack, of size 0' 2040811f818f "$(encode 0)"
seen 'hpack, of size 0, then 4096' 203fe11f40811f818f "$(encode 0 4096)"
seen 'hpack reads that of hpack.js' InvalidTableSizeError "$(decode 0 "$(js 0)")"
seen 'hpack reads that of hpack' 'a: b' "$(decode 0 "$(encode 0)")"
