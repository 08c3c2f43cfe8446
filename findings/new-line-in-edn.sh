#!/usr/bin/env bash
# "a\nb \u00e4"
#
# "extensible data notation", section "Strings" and "Characters": \n within a string is a new line, and \uNNNN a character as in Java;
# \u00e4 outside of one is a character, too. Integers have 64 bits, or any number behind which N stands. An element behind #_ is dropped.
# Guess: libraries for EDN read these.
# Seen: jsedn 0.4.1 (npm) gives the string "a\nb u00e4" with a backslash and without one, refuses the character, and gives a text for
# 9007199254740993. For what stands behind #_ 1 it gives the empty string. edn-data 1.2.2 (npm) reads the strings, and gives
# 9007199254740992. edn_format 0.8.0 (Python) reads all of them.
# Texts of several lines become one.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install jsedn@0.4.1 edn-data@1.2.2
pip_install edn_format==0.8.0
read_js() {
    node -e '
        const [library, text] = process.argv.slice(1);
        try {
            const found = library === "jsedn" ? require(library).toJS(require(library).parse(text)) : require(library).parseEDNString(text);
            console.log(JSON.stringify(found?.char ?? found));
        } catch {
            console.log("error");
        }' "$1" "$2"
}
# each TEXT EDN_FORMAT EDN-DATA JSEDN
each() {
    seen "edn_format: $1" "$2" "$(v/bin/python -c '
import edn_format, json, sys
print(json.dumps(edn_format.loads(sys.argv[1]), ensure_ascii=False))' "$1")"
    seen '  edn-data' "$3" "$(read_js edn-data "$1")"
    seen '  jsedn' "$4" "$(read_js jsedn "$1")"
}
each '"a"' '"a"' '"a"' '"a"'
each '"a\nb"' '"a\nb"' '"a\nb"' '"a\\nb"'
each '"\u00e4"' '"ä"' '"ä"' '"u00e4"'
each '\u00e4' '"ä"' '"ä"' error
each 9007199254740993 9007199254740993 9007199254740992 '"9007199254740993"'
each '#_ 1 2' 2 2 '""'
