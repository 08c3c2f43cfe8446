#!/usr/bin/env bash
# folder = C:\\a\\
# next = b
#
# Java SE, java.util.Properties.load: a line goes on in the next one behind an odd number of backslashes, and two of them are one. A
# backslash before a blank or an equal sign makes it a part of the key, and one before another letter is dropped. A blank ends a key.
# Guess: libraries for such files read what Java reads.
# Seen: java-properties 1.0.2 (npm) and pyjavaproperties3 0.6 (Python) join the two lines. java-properties takes "a b c" for a key
# without a value, keeps the backslash in "a\=b", and refuses the file for "a\c". pyjavaproperties3 gives an error for "a b c", and
# leaves \\ and \u00e4 as they are. jproperties 2.1.2 (Python) and properties-file 5.0.7 (npm) read what Java 17 reads.
# A property is gone, and its text stands at the end of another one.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install java-properties@1.0.2 properties-file@5.0.7
pip_install jproperties==2.1.2 pyjavaproperties3==0.6
cat >Read.java <<'JAVA'
import java.io.FileInputStream;
import java.util.*;
class Read {
    public static void main(String[] arguments) throws Exception {
        var properties = new Properties();
        properties.load(new FileInputStream("a.properties"));
        for (var pair : new TreeMap<>(properties).entrySet())
            System.out.print("[" + pair.getKey() + "=" + pair.getValue() + "]");
    }
}
JAVA
cat >read.js <<'JS'
const fs = require("fs"), text = fs.readFileSync("a.properties", "utf8");
const libraries = {
    "java-properties": () => {
        const file = require("java-properties").of("a.properties");
        return file.getKeys().map((key) => [key, file.get(key)]);
    },
    "properties-file": () => Object.entries(require("properties-file").getProperties(text)),
};
try {
    console.log(libraries[process.argv[2]]().sort().map(([key, value]) => `[${key}=${value}]`).join("").replace(/\n/g, "(new line)"));
} catch {
    console.log("error");
}
JS
cat >read.py <<'PY'
import sys

if sys.argv[1] == "jproperties":
    from jproperties import Properties
    properties = Properties()
    properties.load(open("a.properties", "rb"))
    pairs = [(key, value.data) for key, value in properties.items()]
else:
    from pyjavaproperties3 import Properties
    properties = Properties()
    properties.load(open("a.properties"))
    pairs = properties.getPropertyDict().items()
print("".join(f"[{key}={value}]" for key, value in sorted(pairs)))
PY
# each TEXT JAVA JAVA-PROPERTIES PYJAVAPROPERTIES3
each() {
    printf '%s\n' "$1" >a.properties
    seen "Java: ${1//$'\n'/ | }" "$2" "$(java Read.java)"
    seen '  jproperties' "$2" "$(v/bin/python read.py jproperties)"
    seen '  properties-file' "$2" "$(node read.js properties-file)"
    seen '  java-properties' "$3" "$(node read.js java-properties)"
    seen '  pyjavaproperties3' "$4" "$(v/bin/python read.py pyjavaproperties3 2>/dev/null || echo error)"
}
each $'folder = C:\\\\a\\\\\nnext = b' '[folder=C:\a\][next=b]' '[folder=C:\a(new line)ext = b]' '[folder=C:\\a\next = b]'
each 'a b c' '[a=b c]' '[a b c=]' error
each 'a\=b = c' '[a=b=c]' '[a\=b = c]' '[a=b=c]'
each 'a = \u00e4' '[a=ä]' '[a=ä]' '[a=\u00e4]'
each 'a = a\c' '[a=ac]' error '[a=a\c]'
