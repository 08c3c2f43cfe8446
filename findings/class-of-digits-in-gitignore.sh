#!/usr/bin/env bash
# [[:digit:]].log
#
# gitignore(5): a pattern without a slash matches at each depth, blanks at its end are dropped, a backslash takes the meaning from what
# follows, and a file cannot be taken back if its folder is left out. Its patterns are those of fnmatch(3), which has classes, as
# [[:digit:]], and for which [^a] is what [!a] is.
# Guess: libraries for .gitignore leave out what "git check-ignore" does.
# Seen: gitignore-parser 0.0.2 (npm) keeps a/b.o for *.o, b for [!a], #x for \#x, and leaves out everything for /. gitignore-parser
# 0.1.13 and gitignorefile 1.1.2 (Python) leave out a for [^a], keep x for a pattern with blanks at its end, and a*b for a\*b. All
# three, and pathspec 1.1.1 (Python), keep 5.log, and take back a file of a folder that is left out.
# A package has files that the repository does not have, or lacks some.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install gitignore-parser@0.0.2
pip_install gitignore-parser==0.1.13 gitignorefile==1.1.2 pathspec==1.1.1
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
git init --quiet r
cat >ignored.py <<'PY'
import sys, warnings

warnings.simplefilter("ignore")
library, name, file = sys.argv[1], sys.argv[2], "r/.gitignore"
if library == "pathspec":
    import pathspec
    found = pathspec.GitIgnoreSpec.from_lines(open(file).read().split("\n")).match_file(name)
elif library == "gitignorefile":
    import gitignorefile
    found = gitignorefile.parse(file)("r/" + name, is_dir=False)
else:
    import gitignore_parser
    found = gitignore_parser.parse_gitignore(file)("r/" + name)
print("out" if found else "kept")
PY
# each PATTERNS NAME GIT PATHSPEC GITIGNOREFILE GITIGNORE-PARSER-OF-PYTHON GITIGNORE-PARSER-OF-NPM
each() {
    printf '%b\n' "$1" >r/.gitignore
    if git -C r check-ignore --quiet --no-index -- "$2"; then found=out; else found=kept; fi
    seen "git: $1, of $2" "$3" "$found"
    seen '  pathspec' "$4" "$(v/bin/python ignored.py pathspec "$2")"
    seen '  gitignorefile' "$5" "$(v/bin/python ignored.py gitignorefile "$2")"
    seen '  gitignore-parser of Python' "$6" "$(v/bin/python ignored.py gitignore-parser "$2")"
    seen '  gitignore-parser of npm' "$7" "$(node -p '
        const patterns = require("fs").readFileSync("r/.gitignore", "utf8");
        require("gitignore-parser").compile(patterns).denies(process.argv[1]) ? "out" : "kept"' "$2")"
}
each a.o a.o out out out out out
each '*.o' a/b.o out out out out kept
each '[!a]' b out out out out kept
each '\\#x' '#x' out out out out kept
each / a kept kept kept kept out
each '[^a]' a kept kept out out kept
each 'x  ' x out out kept kept out
each 'a\\*b' 'a*b' out out kept kept kept
each '[[:digit:]].log' 5.log out kept kept kept kept
each 'a/\n!a/x' a/x out kept kept kept kept
