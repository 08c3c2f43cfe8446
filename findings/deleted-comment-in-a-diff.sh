#!/usr/bin/env bash
# @@ -1 +1 @@
# --- a
# +++ b
#
# POSIX, diff, "Diff -u or -U Output Format": the heading of a hunk tells how many lines follow, and each is marked by one character.
# Here a comment of SQL, "-- a", was deleted. git-diff-tree, "Generating patch text with -p": a name with special bytes stands in
# quotes, with backslashes and octal numbers.
# Guess: parsers of diffs find one deleted line, the name "grün.txt" in "b/gr\303\274n.txt", and "new name" as the target of a rename.
# Seen: diffparser 2.0.1 (npm) makes two files of the one, "t.sql" and "b", without a change. patch-ng 1.19.1 (Python) takes the name
# for gr/303/274n.txt, and parse-diff 0.12.0, parse-git-diff 0.0.20 (npm), unidiff 1.0.1 and whatthepatch 1.0.7 (Python) leave it as
# it is, in quotes or without. diffparser and whatthepatch find "name" as the target.
# A tool that reviews changes shows none in such a file, or does not find the file.
# shellcheck disable=SC2016 # templates of JavaScript
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install diffparser@2.0.1 parse-diff@0.12.0 parse-git-diff@0.0.20
pip_install patch-ng==1.19.1 unidiff==1.0.1 whatthepatch==1.0.7
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
git init --quiet r
# changes NAME BEFORE AFTER [NEW NAME]: the diff of this change by git, in ./a.diff
changes() {
    (
        cd r
        echo "$2" >"$1"
        git add --all
        echo "$3" >"$1"
        [[ -z ${4-} ]] || mv "$1" "$4"
        before=$(git write-tree)
        git add --all
        git diff-tree -p -M "$before" "$(git write-tree)"
        rm ./*
    ) >a.diff
}
# found LIBRARY: the names, and how many lines were deleted and added
found() {
    case $1 in
        diffparser | parse-diff | parse-git-diff) node -e '
            const text = require("fs").readFileSync("a.diff", "utf8"), library = require(process.argv[1]);
            const files = (library.default ?? library)(text);
            const count = (chunks, type) => chunks.flatMap((chunk) => chunk.changes).filter((change) => change.type === type).length;
            const show = (name, deleted, added) => `[${name} -${deleted} +${added}]`;
            console.log(process.argv[1] === "parse-git-diff"
                ? files.files.map((file) => show((file.path ?? file.pathAfter).trim(), count(file.chunks, "DeletedLine"),
                    count(file.chunks, "AddedLine"))).join("")
                : files.map((file) => show(file.to, file.deletions, file.additions)).join(""));' "$1" ;;
        *) v/bin/python -c '
import patch_ng, sys, unidiff, whatthepatch
text = open("a.diff").read()
if sys.argv[1] == "unidiff":
    files = [(file.path, file.removed, file.added) for file in unidiff.PatchSet(text)]
elif sys.argv[1] == "whatthepatch":
    files = [(file.header.new_path.strip(), sum(line.new is None for line in file.changes or []),
        sum(line.old is None for line in file.changes or [])) for file in whatthepatch.parse_patch(text)]
else:
    files = [(file.target.decode().removeprefix("b/"), sum(line.startswith(b"-") for hunk in file.hunks for line in hunk.text),
        sum(line.startswith(b"+") for hunk in file.hunks for line in hunk.text)) for file in patch_ng.fromstring(text.encode())]
print("".join(f"[{name} -{removed} +{added}]" for name, removed, added in files))' "$1" ;;
    esac
}
changes t.sql '-- a' '++ b'
for library in parse-diff parse-git-diff unidiff whatthepatch patch-ng; do
    seen "$library: -- a" '[t.sql -1 +1]' "$(found $library)"
done
seen 'diffparser: -- a' '[t.sql -0 +0][b -0 +0]' "$(found diffparser)"
changes grün.txt a b
for library in diffparser parse-git-diff whatthepatch; do
    seen "$library: grün.txt" '["b/gr\303\274n.txt" -1 +1]' "$(found $library)"
done
seen 'unidiff: grün.txt' '["gr\303\274n.txt" -1 +1]' "$(found unidiff)"
seen 'parse-diff: grün.txt' '[gr\303\274n.txt -1 +1]' "$(found parse-diff)"
seen 'patch-ng: grün.txt' '[gr/303/274n.txt -1 +1]' "$(found patch-ng)"
changes n.txt $'a\nb\nc\nd\ne' $'a\nb\nc\nd\ne' 'new name'
for library in parse-diff parse-git-diff unidiff patch-ng; do
    seen "$library: a rename" '[new name -0 +0]' "$(found $library)"
done
for library in diffparser whatthepatch; do
    seen "$library: a rename" '[name -0 +0]' "$(found $library)"
done
