#!/usr/bin/env bash
# Accept-Language: de,en
#
# RFC 9110, section 12.4.2: a weight says how much a member is preferred; of members with equal weights it says nothing.
# Guess: a server that has both languages takes the one that the client named first.
# Seen: WebOb 1.8.9 (Python) and negotiator 1.0.0 (npm, below Express) do. Werkzeug 3.1.3 (below Flask) takes the one that
# the server named first. Likewise for media types. So the order of members may decide about an answer or not: a cache
# that sorts them, or drops their order, is wrong before the first kind.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install negotiator@1.0.0
negotiator() {
    node -e '
        const Negotiator = require("negotiator");
        const request = { headers: { "accept-language": process.argv[1] } };
        console.log(new Negotiator(request).language(["en", "de"]));' "$1"
}
seen 'negotiator: en,de' en "$(negotiator 'en,de')"
seen 'negotiator: de,en' de "$(negotiator 'de,en')"

pip_install webob==1.8.9 werkzeug==3.1.3
webob() {
    v/bin/python -c '
import sys
from webob.acceptparse import create_accept_language_header
print(create_accept_language_header(sys.argv[1]).lookup(["en", "de"], default="none"))' "$1"
}
seen 'WebOb: en,de' en "$(webob 'en,de')"
seen 'WebOb: de,en' de "$(webob 'de,en')"

werkzeug() {
    v/bin/python -c '
import sys
from werkzeug.http import parse_accept_header
from werkzeug.datastructures import LanguageAccept
print(parse_accept_header(sys.argv[1], LanguageAccept).best_match(["en", "de"]))' "$1"
}
seen 'Werkzeug: en,de' en "$(werkzeug 'en,de')"
seen 'Werkzeug: de,en' en "$(werkzeug 'de,en')"
