#!/usr/bin/env bash
# return 301 "#top";
#
# In a file of nginx, # begins a comment at the beginning of a word, and not within quotes (ngx_conf_read_token). So the
# quotes above carry meaning.
# Guess: a library that reads such a file and writes it again keeps quotes where the word needs them.
# Seen: crossplane 0.5.8 (Python), by the makers of nginx, reads the argument #top, and writes it without quotes: the
# rest of the line is a comment, with its semicolon. It keeps the quotes of words with blanks, braces and semicolons.
# @webantic/nginx-config-parser 1.6.1 (npm) takes the line for a comment when it reads it.
# After a change of one directive by such a tool, compare the whole file before a reload.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install crossplane==0.5.8
cat >again.py <<'PY'
import sys, crossplane

def parse(text):
    open("a.conf", "w").write(text)
    return crossplane.parse("a.conf", check_ctx=False, check_args=False)["config"][0]["parsed"]

written = crossplane.build(parse(sys.argv[1]))
print(written, "->", *(directive.get("comment", directive["args"]) for directive in parse(written + "\na b;\n")))
PY
seen 'crossplane: "x y"' "return 301 'x y'; -> ['301', 'x y'] ['b']" "$(v/bin/python again.py 'return 301 "x y";')"
seen 'crossplane: "x;y"' "return 301 'x;y'; -> ['301', 'x;y'] ['b']" "$(v/bin/python again.py 'return 301 "x;y";')"
seen 'crossplane: "#top"' "return 301 #top; -> ['301', 'a', 'b'] top;" "$(v/bin/python again.py 'return 301 "#top";')"

npm_install @webantic/nginx-config-parser@1.6.1
parse() {
    node -e '
        const Parser = require("@webantic/nginx-config-parser");
        console.log(JSON.stringify(new Parser().toJSON(process.argv[1] + "\n")));' "$1"
}
seen '@webantic/...: "x y"' '{"return":"301 \"x y\""}' "$(parse 'return 301 "x y";')"
seen '@webantic/...: "#top"' '{}' "$(parse 'return 301 "#top";')"
