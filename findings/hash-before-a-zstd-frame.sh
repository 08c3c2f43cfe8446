#!/usr/bin/env bash
# Content-Encoding: dcz
#
# RFC 9842, section 5: the content is a frame of 40 bytes with the hash of the dictionary, which decoders of zstd skip
# (RFC 8878, section 3.1.2), and then the compressed frame. So any of them can read the whole, given the dictionary.
# Guess: the calls of a library for content that is at hand do so.
# Seen: of zstandard 0.25.0 (Python), decompress() raises an error that names 32 bytes, and decompressobj() gives no
# content and no error. Its stream_reader(), pyzstd 0.20.0 and backports.zstd 1.8.0 (which urllib3 uses) give the content.
# A client or a test on the first library has to cut the 40 bytes off, or ask for read_across_frames.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install zstandard==0.25.0 pyzstd==0.20.0 backports.zstd==1.8.0
cat >read.py <<'PY'
import hashlib, sys
import pyzstd, zstandard
from backports import zstd

text = b"hello dictionary " * 20
dictionary = zstandard.ZstdCompressionDict(text, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
frame = zstandard.ZstdCompressor(dict_data=dictionary).compress(b"hello dictionary world")
content = bytes.fromhex("5e2a4d1820000000") + hashlib.sha256(text).digest() + frame
def reader():
    return zstandard.ZstdDecompressor(dict_data=dictionary)
calls = {
    "decompress": lambda given: reader().decompress(given),
    "decompressobj": lambda given: reader().decompressobj().decompress(given),
    "across": lambda given: reader().decompressobj(read_across_frames=True).decompress(given),
    "stream_reader": lambda given: reader().stream_reader(given).read(),
    "pyzstd": lambda given: pyzstd.decompress(given, zstd_dict=pyzstd.ZstdDict(text, is_raw=True)),
    "backports": lambda given: zstd.decompress(given, zstd_dict=zstd.ZstdDict(text, is_raw=True)),
}
try:
    print(calls[sys.argv[1]](content if sys.argv[2] == "dcz" else frame))
except zstandard.ZstdError as error:
    print("error:", error)
PY
for call in decompress decompressobj across stream_reader pyzstd backports; do
    seen "$call: the frame alone" "b'hello dictionary world'" "$(v/bin/python read.py $call frame)"
done
seen 'decompress: dcz' 'error: decompression error: decompressed 0 bytes; expected 32' \
    "$(v/bin/python read.py decompress dcz)"
seen 'decompressobj: dcz' "b''" "$(v/bin/python read.py decompressobj dcz)"
for call in across stream_reader pyzstd backports; do
    seen "$call: dcz" "b'hello dictionary world'" "$(v/bin/python read.py $call dcz)"
done
