#!/usr/bin/env bash
# Accept: text/html;a="x,y", text/plain;q=0.5
#
# RFC 9110, section 12.5.1: a media range has parameters, whose values may be in quotes (section 5.6.6), and a comma
# within quotes ends nothing. Section 8.3.1: the names of types have no case.
# Guess: a library whose only task is this field reads two ranges, and finds TEXT/HTML to be text/html.
# Seen: python-mimeparse 2.0.0 (Python) fails, as `y"` is no type; a semicolon within quotes it reads. For TEXT/HTML it
# finds nothing. werkzeug 3.1.9 (Python) reads two ranges, and finds text/html for TEXT/HTML.
# A field that is allowed ends in an error of the server, unless the program catches it.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install python-mimeparse==2.0.0 werkzeug==3.1.9
cat >choose.py <<'PY'
import sys
library, field = sys.argv[1:]
types = ["text/plain", "text/html"]
if library == "mimeparse":
    import mimeparse
    try:
        print(mimeparse.best_match(types, field) or "none")
    except mimeparse.MimeTypeParseException:
        print("fails")
else:
    from werkzeug.datastructures import MIMEAccept
    from werkzeug.http import parse_accept_header
    found = parse_accept_header(field, MIMEAccept)
    print(len(found), found.best_match(types))
PY
choose() {
    v/bin/python choose.py "$@"
}
seen 'mimeparse: text/html, text/plain;q=0.5' text/html "$(choose mimeparse 'text/html, text/plain;q=0.5')"
seen 'mimeparse: "x;y"' text/html "$(choose mimeparse 'text/html;a="x;y", text/plain;q=0.5')"
seen 'mimeparse: "x,y"' fails "$(choose mimeparse 'text/html;a="x,y", text/plain;q=0.5')"
seen 'mimeparse: TEXT/HTML' none "$(choose mimeparse TEXT/HTML)"
seen 'werkzeug: "x,y"' '2 text/plain' "$(choose werkzeug 'text/html;a="x,y", text/plain;q=0.5')"
seen 'werkzeug: TEXT/HTML' '1 text/html' "$(choose werkzeug TEXT/HTML)"
