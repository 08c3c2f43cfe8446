#!/usr/bin/env bash
# Accept-Language: zh-Hant-CN, en;q=0.3, for a server that has en and zh-Hant
#
# RFC 4647, section 3.4: a lookup takes parts off the end of the range until something matches, and has this very range
# for its example: zh-Hant-CN, then zh-Hant, then zh.
# Guess: a library that gives de for de-AT gives zh-Hant here.
# Seen: negotiator 1.1.0 (npm), which Express and Koa choose by, gives en; it gives de for de-AT, and zh if the server
# has that. best_match of WebOb 1.8.11 (Python) does the same. lookup of WebOb and accept-language 3.0.20 (npm) give
# zh-Hant. werkzeug 3.1.9 (Python) gives en, and gives en for `de-AT, en;q=0.3`, too, although de alone is found.
# A reader of Chinese in traditional script gets English, where a reader of Austrian German gets German.
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
    print(found.best_match(languages) if library == "WebOb" else found.lookup(languages, default="none"))
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
# row LIBRARY PROGRAM OF_THREE OF_TWO OF_ONE
row() {
    seen "$1: zh-Hant-CN, of zh-Hant" "$3" "$($2 "$1" 'zh-Hant-CN, en;q=0.3' en zh-Hant)"
    seen "$1: de-AT, of de" "$4" "$($2 "$1" 'de-AT, en;q=0.3' en de)"
    seen "$1: de-AT alone, of de" "$5" "$($2 "$1" de-AT en de)"
}
PYTHON='v/bin/python -W ignore choose.py'
row negotiator 'node choose.js' en de de
row WebOb "$PYTHON" en de de
row lookup "$PYTHON" zh-Hant de de
row accept-language 'node choose.js' zh-Hant de de
row werkzeug "$PYTHON" en en de
