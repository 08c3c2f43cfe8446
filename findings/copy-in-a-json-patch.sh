#!/usr/bin/env bash
# [{"op": "copy", "from": "/a", "path": "/b"}, {"op": "replace", "path": "/b/c", "value": 2}]
#
# RFC 6902, section 4.5: "copy" puts a copy at the other place, so that a change of it leaves the first alone. Section 4.6: objects are
# equal whatever the order of their members. RFC 6901, section 4: an index has no zeros before it.
# Guess: libraries for JSON Patch make {"a":{"c":1},"b":{"c":2}} of {"a":{"c":1}}.
# Seen: json-patch 0.7.0 (npm) changes both, fails at a "test" whose members are in another order, and takes /a/01 for /a/1. jsonpatch
# 3.1.0, fast-json-patch 3.1.1 (npm) and jsonpatch 1.33 (Python) do none of this, but that fast-json-patch takes /a/01, too.
# The entry that a new one was copied from is changed with it.
# shellcheck disable=SC2016 # templates of JavaScript
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install json-patch@0.7.0 jsonpatch@3.1.0 fast-json-patch@3.1.1
pip_install jsonpatch==1.33
# patch LIBRARY DOCUMENT PATCH
patch() {
    if [[ $1 == python ]]; then
        v/bin/python -c '
import json, jsonpatch, sys
try:
    print(json.dumps(jsonpatch.apply_patch(json.loads(sys.argv[1]), json.loads(sys.argv[2])), separators=(",", ":")))
except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException):
    print("error")' "$2" "$3"
        return
    fi
    node -e '
        const [library, document, patch] = process.argv.slice(1), found = require(library);
        const apply = {
            "json-patch": found.apply,
            jsonpatch: found.apply_patch,
            "fast-json-patch": (document, patch) => found.applyPatch(document, patch, true).newDocument,
        }[library];
        try {
            console.log(JSON.stringify(apply(JSON.parse(document), JSON.parse(patch))));
        } catch {
            console.log("error");
        }' "$1" "$2" "$3"
}
# each DOCUMENT PATCH PYTHON FAST-JSON-PATCH JSONPATCH JSON-PATCH
each() {
    seen "Python: $2" "$3" "$(patch python "$1" "$2")"
    seen '  fast-json-patch' "$4" "$(patch fast-json-patch "$1" "$2")"
    seen '  jsonpatch of npm' "$5" "$(patch jsonpatch "$1" "$2")"
    seen '  json-patch' "$6" "$(patch json-patch "$1" "$2")"
}
RIGHT='{"a":{"c":1},"b":{"c":2}}'
each '{"a":{"c":1}}' '[{"op":"copy","from":"/a","path":"/b"},{"op":"replace","path":"/b/c","value":2}]' \
    "$RIGHT" "$RIGHT" "$RIGHT" '{"a":{"c":2},"b":{"c":2}}'
RIGHT='{"a":1,"b":2}'
each "$RIGHT" '[{"op":"test","path":"","value":{"b":2,"a":1}}]' "$RIGHT" "$RIGHT" "$RIGHT" error
each '{"a":[1]}' '[{"op":"add","path":"/a/01","value":2}]' error '{"a":[1,2]}' error '{"a":[1,2]}'
