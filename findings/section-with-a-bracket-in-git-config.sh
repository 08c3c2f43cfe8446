#!/usr/bin/env bash
# [remote "a]b"]
#     url = x ; y
#
# git-config(1), "Syntax": a part of the name of a section in quotes may have any letters but line breaks; behind ; or # outside of quotes
# a comment begins. Quotes are dropped, \t and \" are a tab and a quote, a value goes on in the next line behind a backslash, and a name
# alone is true. A name may be given twice, and its section may stand on the same line.
# Guess: libraries for this file find what "git config" does.
# Seen: parse-git-config 3.0.0, git-config 0.0.7 and gitconfiglocal 2.1.0 (npm) do not find the section, and give its variables to the
# whole file. All three leave \t and the quotes of a part of a value, end a value at a backslash, find no variable behind a section on
# its line, and give the last of two values. git-config leaves all quotes and comments, and drops a name alone.
# A tool finds no remote, or the wrong address.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install parse-git-config@3.0.0 git-config@0.0.7 gitconfiglocal@2.1.0
mkdir -p r/.git
cat >read.js <<'JS'
const [library, ...path] = process.argv.slice(2), print = (found) => {
    let value = found;
    for (const name of path) value = value?.[name];
    console.log(value === undefined ? "none" : JSON.stringify(value));
};
if (library === "gitconfiglocal") {
    require(library)("r", (error, found) => print(error ? undefined : found));
} else {
    print(library === "git-config" ? require(library).sync("r/.git/config") : require(library).sync({ path: "r/.git/config" }));
}
JS
# each FILE KEY GIT PARSE-GIT-CONFIG GIT-CONFIG GITCONFIGLOCAL, then section, and variable
each() {
    printf '%b\n' "$1" >r/.git/config
    seen "git: $1" "$3" "$(git config -f r/.git/config --get-all "$2" | cat -A | paste -sd ' ')"
    seen '  parse-git-config' "$4" "$(node read.js parse-git-config "${@:7}")"
    seen '  git-config' "$5" "$(node read.js git-config "${@:7}")"
    seen '  gitconfiglocal' "$6" "$(node read.js gitconfiglocal "${@:7}")"
}
each '[a]\nb = c' a.b 'c$' '"c"' '"c"' '"c"' a b
each '[a]\nb = c ; d' a.b 'c$' '"c"' '"c ; d"' '"c"' a b
each '[a]\nb = "c"' a.b 'c$' '"c"' '"\"c\""' '"c"' a b
each '[a]\nb = "c" d' a.b 'c d$' '"\"c\" d"' '"\"c\" d"' '"\"c\" d"' a b
each '[a]\nb = c\\td' a.b 'c^Id$' '"c\\td"' '"c\\td"' '"c\\td"' a b
each '[a]\nb = c\\\nd' a.b 'cd$' '"c\\"' '"c\\"' '"c\\"' a b
each '[a]\nb = c\nb = d' a.b 'c$ d$' '"d"' '"d"' '"d"' a b
each '[a]\nb' a.b '$' true none true a b
each '[a] b = c' a.b 'c$' none none none a b
each '[remote "ab"]\nurl = c' remote.ab.url 'c$' '"c"' '"c"' none 'remote "ab"' url
each '[remote "a]b"]\nurl = c' 'remote.a]b.url' 'c$' none none none 'remote "a]b"' url
each '[remote "a]b"]\nurl = c' 'remote.a]b.url' 'c$' '"c"' '"c"' '{"0":"c"}' url
