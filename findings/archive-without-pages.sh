#!/usr/bin/env bash
# {"log": {"version": "1.2", "creator": ..., "entries": [...]}}
#
# HAR 1.2 (softwareishard.com), "log": pages is optional, and a program that does not group by pages leaves it out.
# "content": text is encoded as encoding says, base64 for one.
# Guess: readers take the entries as they are, and give the text decoded.
# Seen: har2warc 1.0.4 (Python) fails with KeyError, and writes the answer where the list is there and empty. haralyzer
# 2.4.0 (Python) reads both, and gives the text of an answer as base64. har-validator 5.1.5 (npm) finds the file valid.
# What a program records that knows no pages needs an empty list of them before it can be kept as WARC.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install har2warc==1.0.4 haralyzer==2.4.0
npm_install har-validator@5.1.5 2>/dev/null
cat >write.py <<'PY'
import json, sys
request = {
    "method": "GET", "url": "https://a.example/", "httpVersion": "HTTP/1.1", "cookies": [], "headers": [],
    "queryString": [], "headersSize": -1, "bodySize": 0,
}
content = {"size": 5, "mimeType": "text/plain", "text": "aGVsbG8=", "encoding": "base64"}
response = {
    "status": 200, "statusText": "OK", "httpVersion": "HTTP/1.1", "cookies": [], "headers": [], "content": content,
    "redirectURL": "", "headersSize": -1, "bodySize": 5,
}
entry = {
    "startedDateTime": "2026-01-01T00:00:00.000Z", "time": 1, "request": request, "response": response, "cache": {},
    "timings": {"send": 0, "wait": 1, "receive": 0},
}
log = {"version": "1.2", "creator": {"name": "a", "version": "1"}, "entries": [entry]}
if sys.argv[1] == "empty":
    log["pages"] = []
with open("a.har", "w") as file:
    json.dump({"log": log}, file)
PY
cat >read.py <<'PY'
import json
from haralyzer import HarParser
with open("a.har") as file:
    print(*(entry.response.text for page in HarParser(json.load(file)).pages for entry in page.entries))
PY
archive() {
    v/bin/har2warc --no-z a.har a.warc 2>&1 | tail -n 1
    grep -ao '^hello' a.warc || true
}
v/bin/python write.py empty
seen 'har2warc: an empty list' hello "$(archive)"
seen haralyzer aGVsbG8= "$(v/bin/python read.py)"
v/bin/python write.py none
seen 'har2warc: no list' "KeyError: 'pages'" "$(rm a.warc; archive)"
seen haralyzer aGVsbG8= "$(v/bin/python read.py)"
cp a.har a.har.json
seen har-validator valid \
    "$(node -e 'require("har-validator").har(require("./a.har.json")).then(() => console.log("valid"))' 2>&1)"
