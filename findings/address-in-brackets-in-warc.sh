#!/usr/bin/env bash
# WARC-Target-URI: <http://a.example/>
#
# The WARC file format 1.0 (ISO 28500:2009), section 4: the grammar of an address has the brackets, and Wget writes them;
# 1.1 leaves them out. Section 5.5: types of records beyond those of the standard are allowed.
# Guess: a reader of both versions takes the brackets away, and gives the type as it stands.
# Seen: FastWARC 2.0.1 (Python) gives the address with its brackets, and `unknown` for the type. warcio 1.8.1 (Python) gives
# the address without them, and the type.
# The same page has two addresses, by the tool that archived it.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install FastWARC==2.0.1 warcio==1.8.1
read_with() {
    v/bin/python -c '
import io, sys
library, kind, address = sys.argv[1:]
record = io.BytesIO("\r\n".join([
    "WARC/1.0",
    "WARC-Type: " + kind,
    "WARC-Record-ID: <urn:uuid:00000000-0000-0000-0000-000000000001>",
    "WARC-Date: 2024-02-29T10:11:12Z",
    "WARC-Target-URI: " + address,
    "Content-Type: text/plain",
    "Content-Length: 5",
    "",
    "hello",
    "",
    "",
]).encode())
if library == "warcio":
    from warcio.archiveiterator import ArchiveIterator
    for found in ArchiveIterator(record):
        print(found.rec_type, found.rec_headers.get_header("WARC-Target-URI"))
else:
    from fastwarc.warc import ArchiveIterator
    for found in ArchiveIterator(record):
        print(str(found.record_type).split(".")[-1], found.headers.get("WARC-Target-URI"))' "$@"
}
seen 'warcio: plain' 'resource http://a.example/' "$(read_with warcio resource http://a.example/)"
seen 'warcio: brackets' 'resource http://a.example/' "$(read_with warcio resource '<http://a.example/>')"
seen 'warcio: another type' 'x-own http://a.example/' "$(read_with warcio x-own http://a.example/)"
seen 'FastWARC: plain' 'resource http://a.example/' "$(read_with fastwarc resource http://a.example/)"
seen 'FastWARC: brackets' 'resource <http://a.example/>' "$(read_with fastwarc resource '<http://a.example/>')"
seen 'FastWARC: another type' 'unknown http://a.example/' "$(read_with fastwarc x-own http://a.example/)"
