#!/usr/bin/env bash
# Accept-Language: en-US;q=0, en
#
# RFC 9110, section 12.4.2: a weight of 0 means "not acceptable". RFC 4647, section 3.3.1: in filters, a range such as
# en stands for all that begin with it, so this client takes any English but that of the United States.
# Guess: of en-US and en-GB each negotiator gives en-GB, or none at all.
# Seen: best_match of werkzeug 3.1.9 and of WebOb 1.8.11 (Python) gives en-US, and so does accept-language 3.0.20 (npm).
# For `de;q=0, *`, of de and en, WebOb and accept-language give de. basic_filtering of WebOb, which was made after the
# RFC, gives the right one both times, and negotiator 1.1.0 (npm) does.
# A site shows the one language that its reader refuses.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install werkzeug==3.1.9 webob==1.8.11
npm_install accept-language@3.0.20 negotiator@1.1.0
cat >choose.py <<'PY'
import sys
library, field, *languages = sys.argv[1:]
if library == "werkzeug":
    from werkzeug.datastructures import LanguageAccept
    from werkzeug.http import parse_accept_header
    print(parse_accept_header(field, LanguageAccept).best_match(languages))
else:
    from webob.acceptparse import create_accept_language_header
    found = create_accept_language_header(field)
    print(found.best_match(languages) if library == "WebOb" else found.basic_filtering(languages)[0][0])
PY
cat >choose.js <<'JS'
const [library, field, ...languages] = process.argv.slice(2);
if (library === "accept-language") {
    const chooser = require("accept-language").create();
    chooser.languages(languages);
    console.log(chooser.get(field));
} else {
    const Negotiator = require("negotiator");
    console.log(new Negotiator({ headers: { "accept-language": field } }).language(languages));
}
JS
# row LIBRARY PROGRAM OF_US OF_GERMAN
row() {
    seen "$1: en-US;q=0, en" "$3" "$($2 "$1" 'en-US;q=0, en' en-US en-GB)"
    seen "$1: de;q=0, *" "$4" "$($2 "$1" 'de;q=0, *' de en)"
}
PYTHON='v/bin/python -W ignore choose.py'
row werkzeug "$PYTHON" en-US en
row WebOb "$PYTHON" en-US de
row basic_filtering "$PYTHON" en-GB en
row accept-language 'node choose.js' en-US de
row negotiator 'node choose.js' en-GB en
