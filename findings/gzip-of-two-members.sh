#!/usr/bin/env bash
# Content-Encoding: gzip, with a file of two members
#
# RFC 1952, section 2.2: a gzip file is a series of members, which follow each other with nothing between them. RFC
# 9110, section 8.4.1.3, takes the format as it is. `cat a.gz b.gz`, bgzip and loggers that append write such files.
# Guess: each client that decodes gzip gives out all members, as gzip itself does.
# Seen: httpx 0.28.1 (Python) gives the first member and drops the rest, without an error. urllib3 2.8.0 gives both.
# A server that hands out such a file as it lies on the disk is right, and the user of this client sees half of it.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install httpx==0.28.1 urllib3==2.8.0
cat >ask.py <<'PY'
import gzip, io, sys
import httpx, urllib3

fields = {"content-encoding": "gzip"}
body = b"".join(gzip.compress(member.encode()) for member in sys.argv[2:])
if sys.argv[1] == "httpx":
    print(httpx.Response(200, headers=fields, content=body).text)
else:
    print(urllib3.HTTPResponse(io.BytesIO(body), headers=fields).data.decode())
PY
seen 'httpx: one member' 'hello world' "$(v/bin/python ask.py httpx 'hello world')"
seen 'httpx: two members' 'hello ' "$(v/bin/python ask.py httpx 'hello ' world)"
seen 'urllib3: two members' 'hello world' "$(v/bin/python ask.py urllib3 'hello ' world)"
