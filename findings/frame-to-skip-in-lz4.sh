#!/usr/bin/env bash
# 50 2a 4d 18, a length and some bytes, before a frame of LZ4
#
# The LZ4 frame format, "Skippable frames" and "Frame Concatenation": decoders pass over such frames, which hold data of
# an application, and join the contents of several frames.
# Guess: a library on the C code of LZ4 gives the content behind it, as does the command lz4.
# Seen: the function lz4.frame.decompress of lz4 4.4.5 (Python) gives no bytes, without an error, and of two frames the first
# alone. Its lz4.frame.open, cramjam 2.14.0 (Python) give all of it.
# A file that another tool begins with its own data is empty for this function.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install lz4==4.4.5 cramjam==2.14.0
SKIPPED=502a4d1803000000616263
python() {
    v/bin/python -c '
import io, sys
import cramjam, lz4.frame
way, skipped = sys.argv[1:]
first, second = lz4.frame.compress(b"hello "), lz4.frame.compress(b"world")
data = bytes.fromhex(skipped) + first if skipped else first + second
print({
    "decompress": lambda: lz4.frame.decompress(data),
    "open": lambda: lz4.frame.open(io.BytesIO(data)).read(),
    "cramjam": lambda: bytes(cramjam.lz4.decompress(data)),
}[way]())' "$@"
}
seen 'open: two frames' "b'hello world'" "$(python open '')"
seen 'open: one to skip' "b'hello '" "$(python open $SKIPPED)"
seen 'cramjam: two frames' "b'hello world'" "$(python cramjam '')"
seen 'cramjam: one to skip' "b'hello '" "$(python cramjam $SKIPPED)"
seen 'decompress: two frames' "b'hello '" "$(python decompress '')"
seen 'decompress: one to skip' "b''" "$(python decompress $SKIPPED)"
