#!/usr/bin/env bash
# /x/0, of {"x": {"0": "zero"}}
#
# RFC 6901, section 4: a part of a pointer is the name of a member, if the value there is an object, and an index, if it is an array. An
# index has no zeros in front, and is nothing but digits.
# Guess: libraries for JSON Pointer decide by the value that they have found.
# Seen: @croct/json-pointer 0.3.0 (npm) fails at the member "0" of an object, as it takes digits for an index wherever they stand, and
# takes /l/00 for the first element. @hyperjump/json-pointer 1.1.2 (npm) finds the second element of a list for /l/+1, /l/01 and /l/1e0.
# json-pointer 0.6.2 (npm) finds the member of the object, refuses these indices, and gives 2 for /l/length, the length of the list.
# A pointer to /paths/~1a/responses/200, as in OpenAPI, is one to such a member.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install @croct/json-pointer@0.3.0 @hyperjump/json-pointer@1.1.2 json-pointer@0.6.2
cat >find.mjs <<'JS'
import { JsonPointer } from "@croct/json-pointer";
import * as hyperjump from "@hyperjump/json-pointer";
import pointers from "json-pointer";

const document = { x: { 0: "zero" }, l: ["a", "b"] };
const find = {
    croct: (pointer) => JsonPointer.parse(pointer).get(document),
    hyperjump: (pointer) => hyperjump.get(pointer, document),
    "json-pointer": (pointer) => pointers.get(document, pointer),
};
for (const [library, pointer] of process.argv.slice(2).map((text) => text.split(" "))) {
    try {
        console.log(find[library](pointer));
    } catch (error) {
        console.log(error.message);
    }
}
JS
# each COMMAND CASE EXPECTED...: COMMAND runs once, with all cases, and prints a line for each
each() {
    local command cases=() expected=() found i
    read -ra command <<<"$1"
    shift
    while (($#)); do
        cases+=("$1")
        expected+=("$2")
        shift 2
    done
    mapfile -t found < <("${command[@]}" "${cases[@]}")
    for i in "${!cases[@]}"; do seen "${command[*]:1} ${cases[i]}" "${expected[i]}" "${found[i]-}"; done
}
each 'node find.mjs' \
    'croct /l/1' b \
    'hyperjump /l/1' b \
    'json-pointer /l/1' b \
    'croct /x/0' 'Expected array at "/x", got object.' \
    'hyperjump /x/0' zero \
    'json-pointer /x/0' zero \
    'croct /l/00' a \
    'hyperjump /l/00' a \
    'json-pointer /l/00' 'Invalid reference token: 00' \
    'croct /l/+1' 'Expected an object at "/l", got an array.' \
    'hyperjump /l/+1' b \
    'json-pointer /l/+1' 'Invalid reference token: +1' \
    'hyperjump /l/1e0' b \
    'json-pointer /l/1e0' 'Invalid reference token: 1e0' \
    'hyperjump /l/length' undefined \
    'json-pointer /l/length' 2
