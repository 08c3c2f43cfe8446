#!/usr/bin/env bash
# a WARC record of an answer in chunks, with a trailer section
#
# RFC 9112, section 7.1: chunks end with one of size 0, and fields may follow it; they are no part of the content. Section
# 6.1: Transfer-Encoding may name gzip before chunked.
# Guess: a library that reads WARC files, and takes the content out of the chunks, ends it at the chunk of size 0.
# Seen: warcio 1.8.1 (Python) puts `0` and a part of the trailer section behind the content. Where the answer is in
# `gzip, chunked`, it leaves the chunks as they are, without an error. It passes over extensions of chunks.
# An archive of a site whose answers have trailers gives other pages than the site did.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install warcio==1.8.1
cat >read.py <<'PY'
import io, sys
from warcio.archiveiterator import ArchiveIterator
coding, content = (word.encode().decode("unicode_escape").encode("latin-1") for word in sys.argv[1:])
answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: " + coding + b"\r\n\r\n" + content
record = f"""WARC/1.1
WARC-Type: response
WARC-Record-ID: <urn:uuid:12345678-1234-4234-8234-123456789abc>
WARC-Date: 2026-01-01T00:00:00Z
WARC-Target-URI: http://a.example/
Content-Type: application/http; msgtype=response
Content-Length: {len(answer)}

""".replace("\n", "\r\n").encode() + answer + b"\r\n\r\n"
for found in ArchiveIterator(io.BytesIO(record)):
    print(found.content_stream().read())
PY
seen 'no trailer' "b'hi'" "$(v/bin/python read.py chunked '2\r\nhi\r\n0\r\n\r\n')"
seen 'extension' "b'hi'" "$(v/bin/python read.py chunked '2;a=b\r\nhi\r\n0\r\n\r\n')"
seen 'trailer' "b'hi0\\r\\n 1\\r\\n\\r\\n'" "$(v/bin/python read.py chunked '2\r\nhi\r\n0\r\nT: 1\r\n\r\n')"
GZIP='\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\xff\xcb\xc8\x04\x00\xac*\x93\xd8\x02\x00\x00\x00'
CONTENT="b'16\\r\\n\\x1f\\x8b\\x08\\x00\\x00\\x00\\x00\\x00\\x02\\xff\\xcb\\xc8\\x04\\x00\\xac*\\x93\\xd8\\x02\\x00\\x00\\x00"
seen 'gzip, chunked' "$CONTENT\\r\\n0\\r\\n\\r\\n'" "$(v/bin/python read.py 'gzip, chunked' "16\\r\\n$GZIP\\r\\n0\\r\\n\\r\\n")"
