#!/usr/bin/env bash
# Accept: text/html;q=0, */*
#
# RFC 9110, section 12.5.1: the most specific range decides on a type, wherever it stands, and a weight of 0 makes the
# type unacceptable. Section 8.3.1: the names of types are case-insensitive.
# Guess: a library chooses text/plain, of text/html and text/plain.
# Seen: accept-types 0.4.1 (Python) chooses text/html; the same for `text/html;q=0.1, text/*;q=0.5`. It finds nothing
# for TEXT/HTML. Werkzeug 3.1.8 (Python) chooses text/plain in both, and finds text/html.
# A server on it sends clients the one format that they refuse.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install accept-types==0.4.1 werkzeug==3.1.8
cat >choose.py <<'PY'
import sys
from accept_types import get_best_match
from werkzeug.datastructures import MIMEAccept
from werkzeug.http import parse_accept_header
library, field = sys.argv[1:]
types = ["text/html", "text/plain"]
if library == "accept-types":
    print(get_best_match(field, types))
else:
    print(parse_accept_header(field, MIMEAccept).best_match(types))
PY
for field in 'text/html;q=0, */*' 'text/html;q=0.1, text/*;q=0.5'; do
    seen "accept-types: $field" text/html "$(v/bin/python choose.py accept-types "$field")"
    seen "Werkzeug: $field" text/plain "$(v/bin/python choose.py werkzeug "$field")"
done
seen 'accept-types: TEXT/HTML' None "$(v/bin/python choose.py accept-types TEXT/HTML)"
seen 'Werkzeug: TEXT/HTML' text/html "$(v/bin/python choose.py werkzeug TEXT/HTML)"
