#!/usr/bin/env bash
# a line of text, and then the first part of a multipart answer
#
# RFC 2046, section 5.1.1: text may stand before the first boundary, and recipients have to ignore it.
# Guess: a library that reads multipart answers, as for several ranges, passes over the text.
# Seen: MultipartDecoder of requests-toolbelt 1.0.0 (Python) takes the text for a part, and fails for want of a blank
# line in it. It passes over an empty line there, and over text behind the last boundary. The parser of mail in
# Python's standard library reads the parts.
# A client on it gets an error instead of the ranges that it asked for.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install requests-toolbelt==1.0.0
cat >read.py <<'PY'
import email, sys
from requests_toolbelt.multipart.decoder import MultipartDecoder
library, before, after = sys.argv[1:]
before = {"text": "text\r\n", "line": "\r\n", "none": ""}[before]
parts = "--B\r\nA: 1\r\n\r\nx\r\n--B\r\nA: 2\r\n\r\ny\r\n--B--\r\n"
kind = "multipart/byteranges; boundary=B"
if library == "email":
    mail = email.message_from_string(f"Content-Type: {kind}\r\n\r\n{before}{parts}{after}")
    print(*(part.get_payload() for part in mail.get_payload()))
else:
    try:
        decoder = MultipartDecoder(f"{before}{parts}{after}".encode(), kind)
        print(*(part.content.decode() for part in decoder.parts))
    except Exception as error:
        print(type(error).__name__)
PY
seen 'requests-toolbelt' 'x y' "$(v/bin/python read.py toolbelt none '')"
seen 'requests-toolbelt: text before' ImproperBodyPartContentException "$(v/bin/python read.py toolbelt text '')"
seen 'requests-toolbelt: empty line before' 'x y' "$(v/bin/python read.py toolbelt line '')"
seen 'requests-toolbelt: text after' 'x y' "$(v/bin/python read.py toolbelt none text)"
seen 'email: text before' 'x y' "$(v/bin/python read.py email text '')"
