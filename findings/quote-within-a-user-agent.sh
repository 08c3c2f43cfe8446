#!/usr/bin/env bash
# 192.0.2.1 - - [10/Oct/2000:13:55:36 -0700] "GET /a HTTP/1.1" 200 5 "http://a.example/" "say \"hi\" 1"
#
# The manual of Apache's mod_log_config: quotes and backslashes within such values stand after a backslash.
# Guess: a parser of access logs ends the user agent at the last quote, and gives the referer without quotes.
# Seen: clf-parser 0.0.2 (npm) ends it at the first: `say \`. With a quote in the request, everything behind shifts:
# the status is taken for the size, and the size for the referer. It leaves the quotes of the referer, but not those
# of the user agent. apachelogs 0.6.1 (Python) reads the line.
# A report of statuses and sizes is wrong for such lines, without an error.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install clf-parser@0.0.2
cat >read.js <<'JS'
const found = require("clf-parser")(process.argv[2]);
console.log(JSON.stringify([found.status, found.body_bytes_sent, found.http_referer, found.http_user_agent]));
JS
START='192.0.2.1 - - [10/Oct/2000:13:55:36 -0700]'
AGENT="$START "'"GET /a HTTP/1.1" 200 5 "http://a.example/" "say \"hi\" 1"'
REQUEST="$START "'"GET /a?b=\"c\" HTTP/1.1" 200 5 "http://a.example/" "c"'
PLAIN="$START "'"GET /a HTTP/1.1" 200 5 "http://a.example/" "c"'
seen 'clf-parser: plain' '[200,5,"\"http://a.example/\"","c"]' "$(node read.js "$PLAIN")"
seen 'clf-parser: user agent' '[200,5,"\"http://a.example/\"","say \\"]' "$(node read.js "$AGENT")"
seen 'clf-parser: request' '[null,200,"5","http://a.example/"]' "$(node read.js "$REQUEST")"

pip_install apachelogs==0.6.1
cat >read.py <<'PY'
import apachelogs, sys
entry = apachelogs.LogParser(apachelogs.COMBINED).parse(sys.argv[1])
print(entry.final_status, entry.bytes_sent, *entry.headers_in.values())
PY
seen 'apachelogs: user agent' '200 5 http://a.example/ say "hi" 1' "$(v/bin/python read.py "$AGENT")"
seen 'apachelogs: request' '200 5 http://a.example/ c' "$(v/bin/python read.py "$REQUEST")"
