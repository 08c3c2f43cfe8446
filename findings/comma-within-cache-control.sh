#!/usr/bin/env bash
# Cache-Control: max-age=60, private="a, b"
#
# RFC 9110, section 5.6.1 and 5.6.4: a comma within quotes belongs to the value. RFC 9111, section 5.2.2.7, has the names of
# several fields there, with commas between. RFC 8288, section 3: so does one within <> in Link.
# Guess: a tool that makes lists of the fields that are lists knows quotes.
# Seen: jc 1.26.1 (Python) splits at each comma: private="a is one directive, and b" another; entity tags, targets of links,
# and Accept the same. The date of Set-Cookie, which is no list, stays whole.
# Scripts that look for a directive in the JSON find halves.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install jc==1.26.1
list_of() {
    v/bin/python -c '
import jc, sys
kind, name, value = sys.argv[1:]
first = {"request": "GET / HTTP/1.1", "response": "HTTP/1.1 200 OK"}[kind]
print(jc.parse("http-headers", f"{first}\r\n{name}: {value}\r\n\r\n")[0][name.lower()])' "$@"
}
seen 'Cache-Control' "['max-age=60', 'private']" "$(list_of response Cache-Control 'max-age=60, private')"
seen 'Cache-Control, quoted' "['max-age=60', 'private=\"a', 'b\"']" \
    "$(list_of response Cache-Control 'max-age=60, private="a, b"')"
seen 'If-None-Match' "['\"a', 'b\"']" "$(list_of request If-None-Match '"a,b"')"
seen 'Link' "['<a', 'b>; rel=next']" "$(list_of response Link '<a,b>; rel=next')"
seen 'Accept' "['text/html;x=\"a', 'b\"']" "$(list_of request Accept 'text/html;x="a,b"')"
seen 'Set-Cookie' "['a=b; Expires=Fri, 01 Jan 2027 00:00:00 GMT']" \
    "$(list_of response Set-Cookie 'a=b; Expires=Fri, 01 Jan 2027 00:00:00 GMT')"
