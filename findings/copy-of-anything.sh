#!/usr/bin/env bash
# If-None-Match: *
#
# RFC 9110, section 13.1.2: with * the condition is false if there is a current representation, and then GET is answered
# with 304.
# Guess: a library that answers 304 to the right entity tag answers 304 to * as well.
# Seen: WebOb 1.8.11 (Python) answers 200 with the whole content, as without the field. werkzeug 3.1.9 (Python) answers
# 304, and fresh 2.0.0 (npm) finds the copy fresh.
# WebOb has an object for * whose truth is false, and asks for its truth before it compares.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install webob==1.8.11 werkzeug==3.1.9
npm_install fresh@2.0.0
cat >ask.py <<'PY'
import sys
header = {"If-None-Match": sys.argv[2]}
if sys.argv[1] == "webob":
    from webob import Request, Response
    answer = Response(body=b"hello", etag="a", conditional_response=True)
    print(Request.blank("/", headers=header).get_response(answer).status_int)
else:
    from werkzeug.test import create_environ
    from werkzeug.wrappers import Response
    answer = Response(b"hello")
    answer.set_etag("a")
    print(answer.make_conditional(create_environ(headers=header)).status_code)
PY
for library in webob werkzeug; do
    seen "$library: \"a\"" 304 "$(v/bin/python -W ignore ask.py $library '"a"')"
    seen "$library: \"b\"" 200 "$(v/bin/python -W ignore ask.py $library '"b"')"
done
seen 'webob: *' 200 "$(v/bin/python -W ignore ask.py webob '*')"
seen 'werkzeug: *' 304 "$(v/bin/python ask.py werkzeug '*')"
# shellcheck disable=SC2016 # no variable of the shell
seen 'fresh: *' true "$(node -p 'require("fresh")({ "if-none-match": "*" }, { etag: `"a"` })')"
