#!/usr/bin/env bash
# docs/* @a
#
# GitHub, "About code owners": docs/* is for docs/x.md, and not for docs/y/x.md. Paths are case-sensitive, a comment may stand behind the
# owners of a line, and a pattern in brackets, as in .gitignore, does not work. Of several patterns the last one counts.
# Guess: libraries for CODEOWNERS find the owners that GitHub asks.
# Seen: codeowners-utils 1.0.2 and codeowners 5.1.1 (npm) find @a for docs/y/x.md, and they and @snyk/github-codeowners 1.1.0 (npm) for
# a.js where the pattern is *.JS. codeowners of npm takes the words of a comment for owners, and @snyk/github-codeowners refuses the
# file for it. All but codeowners of npm, codeowners 0.9.0 (Python) among them, find a.md for [ab].md.
# A tool asks others for a review than GitHub does.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install codeowners-utils@1.0.2 codeowners@5.1.1 @snyk/github-codeowners@1.1.0
pip_install codeowners==0.9.0
cat >owners.js <<'JS'
const [library, file] = process.argv.slice(2), { readFileSync } = require("fs");
const owners = {
    "codeowners-utils": () => {
        const { matchFile, parse } = require("codeowners-utils");
        return matchFile(file, parse(readFileSync("CODEOWNERS", "utf8")))?.owners ?? [];
    },
    codeowners: () => new (require("codeowners"))(process.cwd()).getOwner(file),
    "@snyk/github-codeowners": () => require("@snyk/github-codeowners/dist/lib/ownership").OwnershipEngine
        .FromCodeownersFile("CODEOWNERS").calcFileOwnership(file),
};
console.error = () => {};
try {
    console.log(owners[library]().join(" ") || "nobody");
} catch {
    console.log("error");
}
JS
# each LINES FILE PYTHON CODEOWNERS-UTILS CODEOWNERS SNYK
each() {
    printf '%b\n' "$1" >CODEOWNERS
    seen "Python: $1, of $2" "$3" "$(v/bin/python -c '
import codeowners, sys
owners = codeowners.CodeOwners(open("CODEOWNERS").read()).of(sys.argv[1])
print(" ".join(name for _, name in owners) or "nobody")' "$2")"
    seen '  codeowners-utils' "$4" "$(node owners.js codeowners-utils "$2")"
    seen '  codeowners of npm' "$5" "$(node owners.js codeowners "$2")"
    seen '  @snyk/github-codeowners' "$6" "$(node owners.js @snyk/github-codeowners "$2")"
}
each '* @a\n*.js @b' x/y.js @b @b @b @b
each 'docs/* @a' docs/x.md @a @a @a @a
each 'docs/* @a' docs/y/x.md nobody @a @a nobody
each '*.JS @a' a.js nobody @a @a @a
each '*.js @a # b' a.js @a @a '@a # b' error
each '[ab].md @a' a.md @a @a nobody @a
