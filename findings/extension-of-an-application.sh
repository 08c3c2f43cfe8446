#!/usr/bin/env bash
# d4 05 ff: an extension of type 5 in MessagePack
#
# The specification of MessagePack, "Extension types": types 0 to 127 belong to the application, and -1 to -128 are
# reserved. One byte of data may be written as fixext 1, d4, or as ext 8, c7 01.
# Guess: a library gives type and data of a type that the application did not register, the same for both forms.
# Seen: msgpack-lite 0.2.2 (npm) uses most types up to 29 itself: it makes a TypeError of type 5, and looks for a value in its
# data, for which it refuses an extension without data. @ably/msgpack-js 0.4.1 (npm) gives a number for the first form,
# and bytes for the second. @msgpack/msgpack 3.1.3 (npm) and msgpack 1.2.4 (Python) are as guessed.
# An application that numbers its types from 1 on gets errors of JavaScript for them.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install msgpack-lite@0.2.2 @ably/msgpack-js@0.4.1 @msgpack/msgpack@3.1.3
pip_install msgpack==1.2.4
read_with() {
    node -e '
        const [library, text] = process.argv.slice(1);
        try {
            const value = require(library).decode(Buffer.from(text, "hex"));
            const [type, data] = Array.isArray(value) ? value : [value.type, value.data ?? value.buffer];
            const shown = data instanceof Uint8Array ? "bytes " + Buffer.from(data).toString("hex") : data;
            console.log(value instanceof Error ? value.constructor.name : "type " + type + ", " + shown);
        } catch (error) { console.log(error.message); }' "$@"
}
# row WHAT HEX EXPECTED OF_MSGPACK_LITE OF_ABLY
row() {
    seen "@msgpack/msgpack: $1" "$3" "$(read_with @msgpack/msgpack "$2")"
    seen "msgpack of Python: $1" "$3" "$(v/bin/python -c '
import sys, msgpack
value = msgpack.unpackb(bytes.fromhex(sys.argv[1]))
print(f"type {value.code}, bytes {value.data.hex()}")' "$2")"
    seen "msgpack-lite: $1" "$4" "$(read_with msgpack-lite "$2")"
    seen "@ably/msgpack-js: $1" "$5" "$(read_with @ably/msgpack-js "$2")"
}
row 'type 100, fixext 1' d464ff 'type 100, bytes ff' 'type 100, bytes ff' 'type 100, 255'
row 'type 100, ext 8' c70164ff 'type 100, bytes ff' 'type 100, bytes ff' 'type 100, bytes ff'
row 'type 5, fixext 1' d405ff 'type 5, bytes ff' TypeError 'type 5, 255'
row 'type 5, without data' c70005 'type 5, bytes ' BUFFER_SHORTAGE 'type 5, bytes '
