#!/usr/bin/env bash
# d6 ff 00000001: a time in MessagePack
#
# The specification of MessagePack, "Timestamp extension type": type -1 is a time since 1970, in 4 bytes of seconds, in 8
# with 30 bits of nanoseconds, or in 12 with negative seconds.
# Guess: libraries read this type, the only one that the specification defines.
# Seen: what-the-pack 2.0.3, tiny-msgpack 2.2.0 (npm) and ormsgpack 1.13.1 (Python) refuse the message. msgpack-lite
# 0.2.2 and @ably/msgpack-js 0.4.1 (npm) give an extension, of type 255 and not -1. msgpack5 6.1.0 (npm) rounds
# 1.999999999 s up to 2 s, and @msgpack/msgpack 3.1.3, msgpackr 2.1.4 and notepack.io 3.0.1 (npm) cut it to 1.999 s.
# A date in one field costs some clients the whole message; a number is safe.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install what-the-pack@2.0.3 tiny-msgpack@2.2.0 msgpack-lite@0.2.2 @ably/msgpack-js@0.4.1 msgpack5@6.1.0 \
    @msgpack/msgpack@3.1.3 msgpackr@2.1.4 notepack.io@3.0.1
pip_install ormsgpack==1.13.1
read_with() {
    node -e '
        const [library, text] = process.argv.slice(1);
        let codec = require(library);
        if (library === "msgpack5") codec = codec();
        if (library === "what-the-pack") codec = codec.initialize(2 ** 20);
        try {
            const value = codec.decode(Buffer.from(text, "hex"));
            console.log(value.toISOString?.() ?? "type " + (value.type ?? value[0]));
        } catch { console.log("refused"); }' "$@"
}
for library in @msgpack/msgpack msgpackr notepack.io msgpack5; do
    seen "$library: 1 s" 1970-01-01T00:00:01.000Z "$(read_with $library d6ff00000001)"
done
for library in @msgpack/msgpack msgpackr notepack.io; do
    seen "$library: 1.999999999 s" 1970-01-01T00:00:01.999Z "$(read_with $library d7ffee6b27fc00000001)"
done
seen 'msgpack5: 1.999999999 s' 1970-01-01T00:00:02.000Z "$(read_with msgpack5 d7ffee6b27fc00000001)"
seen 'msgpack-lite: 1 s' 'type 255' "$(read_with msgpack-lite d6ff00000001)"
seen '@ably/msgpack-js: 1 s' 'type 255' "$(read_with @ably/msgpack-js d6ff00000001)"
seen 'what-the-pack: 1 s' refused "$(read_with what-the-pack d6ff00000001)"
seen 'tiny-msgpack: 1 s' refused "$(read_with tiny-msgpack d6ff00000001)"
seen 'ormsgpack: 1 s' refused "$(v/bin/python -c '
import ormsgpack
try:
    print(ormsgpack.unpackb(bytes.fromhex("d6ff00000001")))
except Exception:
    print("refused")')"
