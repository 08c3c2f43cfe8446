#!/usr/bin/env bash
# a = [1]
# a += 2
#
# HOCON, "The += field separator": it adds an element to an array. "String value concatenation": true and false, too, are joined as they
# were written, with the blanks between them, and so are a number and a word. "Array and object concatenation": {x : 1} {y : 2} is one
# object. "Unchanged from JSON": \u00e4 in quotes is a letter.
# Guess: libraries for HOCON read what config 1.4.3 (Java), the original, reads.
# Seen: pyhocon 0.3.63 (Python) makes 2 of the array, "TrueFalse" of true false, and leaves \u00e4. hocon-parser 1.0.1 (npm) makes a
# name "a +", 10 of "10 ms", true of true false, "u00e4" of the letter, and puts y beside a. @pushcorn/hocon-parser 1.3.1 (npm) adds
# the text "2".
# The settings of a program are others in its tests, or in its tools.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

maven_install com.typesafe:config:1.4.3
npm_install hocon-parser@1.0.1 @pushcorn/hocon-parser@1.3.1
pip_install pyhocon==0.3.63
cat >Read.java <<'JAVA'
import com.typesafe.config.*;
class Read {
    public static void main(String[] arguments) {
        System.out.println(ConfigFactory.parseString(arguments[0]).resolve().root().render(ConfigRenderOptions.concise()));
    }
}
JAVA
# each TEXT JAVA PUSHCORN HOCON-PARSER PYHOCON
each() {
    seen "config: ${1//$'\n'/ | }" "$2" "$(java -cp 'jars/*' Read.java "$1")"
    seen '  @pushcorn/hocon-parser' "$3" "$(node -e '
        require("@pushcorn/hocon-parser").parse({ text: process.argv[1] }).then((found) => console.log(JSON.stringify(found)));' "$1")"
    seen '  hocon-parser' "$4" "$(node -p 'JSON.stringify(require("hocon-parser")(process.argv[1]))' "$1")"
    seen '  pyhocon' "$5" "$(v/bin/python -c '
import json, pyhocon, sys
print(json.dumps(pyhocon.ConfigFactory.parse_string(sys.argv[1]), separators=(",", ":"), default=repr))' "$1")"
}
FOUND='{"a":{"b":1,"c":2}}'
each 'a = {b:1}'$'\n''a.c = 2' "$FOUND" "$FOUND" "$FOUND" "$FOUND"
each 'a = [1]'$'\n''a += 2' '{"a":[1,2]}' '{"a":[1,"2"]}' '{"a":[1],"a +":2}' '{"a":2}'
each 'a = true false' '{"a":"true false"}' '{"a":"true false"}' '{"a":true}' '{"a":"TrueFalse"}'
each 'a = 10 ms' '{"a":"10 ms"}' '{"a":"10 ms"}' '{"a":10}' '{"a":"datetime.timedelta(microseconds=10000)"}'
each 'a = {x:1} {y:2}' '{"a":{"x":1,"y":2}}' '{"a":{"x":1,"y":2}}' '{"a":{"x":1},"y":2}' '{"a":{"x":1,"y":2}}'
each 'a = "\u00e4"' '{"a":"ä"}' '{"a":"ä"}' '{"a":"u00e4"}' '{"a":"\\u00e4"}'
