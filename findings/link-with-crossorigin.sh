#!/usr/bin/env bash
# Link: </a.css>; rel=preload; as=style; crossorigin, </b.js>; rel=preload; as=script
#
# RFC 8288, section 3: a parameter may come without a value. Links that early hints carry often have this one.
# Guess: parsers of Link find two links.
# Seen: http-link-header 1.1.4 (npm) makes one of the two, to /a.css. parse-link-header 2.0.0 (npm) keys the links by
# their relation, and keeps /b.js alone. requests 2.34.2 (Python) finds two, and loses what follows the name: with the
# relation after crossorigin, the link has none.
# A program or a test that checks the hints of a server by these libraries misses links; crossorigin in quotes
# (crossorigin="") and as the last parameter is read by the first and the third.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install http-link-header@1.1.4 parse-link-header@2.0.0
CROSS='</a.css>; rel=preload; as=style; crossorigin, </b.js>; rel=preload; as=script'
EMPTY='</a.css>; rel=preload; as=style; crossorigin="", </b.js>; rel=preload; as=script'
PLAIN='</a.css>; rel=preload; as=style, </b.js>; rel=preload; as=script'
refs() {
    node -p 'require("http-link-header").parse(process.argv[1]).refs.map((link) => link.uri).join(" ")' "$1"
}
keyed() {
    node -p 'Object.values(require("parse-link-header")(process.argv[1])).map((link) => link.url).join(" ")' "$1"
}
seen 'http-link-header: plain' '/a.css /b.js' "$(refs "$PLAIN")"
seen 'http-link-header: crossorigin' '/a.css' "$(refs "$CROSS")"
seen 'http-link-header: crossorigin=""' '/a.css /b.js' "$(refs "$EMPTY")"
seen 'parse-link-header: plain' '/b.js' "$(keyed "$PLAIN")"

pip_install requests==2.34.2
cat >links.py <<'PY'
import sys
from requests.utils import parse_header_links
print(*(f'{link["url"]}={link.get("rel")}' for link in parse_header_links(sys.argv[1])))
PY
seen 'requests: crossorigin' '/a.css=preload /b.js=preload' "$(v/bin/python links.py "$CROSS")"
seen 'requests: crossorigin; rel=preload' '/a.css=None' "$(v/bin/python links.py '</a.css>; crossorigin; rel=preload')"
seen 'requests: crossorigin=""; rel=preload' '/a.css=preload' \
    "$(v/bin/python links.py '</a.css>; crossorigin=""; rel=preload')"
