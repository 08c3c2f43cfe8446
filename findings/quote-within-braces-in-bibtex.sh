#!/usr/bin/env bash
# @article{k, title = "A {"}q{"} b"}
#
# Oren Patashnik, "BibTeXing", section 2: within quotes a quote may stand in braces; # joins texts and names, such as one of @string, or
# jan, which each style defines. An entry may stand in parentheses, and an at sign may stand in any text.
# Guess: libraries for BibTeX read all of these.
# Seen: bibtex-parse-js 0.0.24 and @orcid/bibtex-parse-js 0.0.25 (npm) end the title at the first quote, drop the year behind it, and
# refuse parentheses and a name before #. bibtex 0.9.0 (npm) refuses parentheses, the name jan, and an address of mail. bibtex-parse
# 2.1.0, astrocite-bibtex 0.16.4 (npm), bibtexparser 1.4.3 and pybtex 0.26.1 (Python) read all of them.
# Titles are cut, and years dropped, without an error.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install bibtex-parse-js@0.0.24 @orcid/bibtex-parse-js@0.0.25 bibtex@0.9.0 bibtex-parse@2.1.0 astrocite-bibtex@0.16.4
pip_install bibtexparser==1.4.3 pybtex==0.26.1
cat >read.js <<'JS'
const [library, text] = process.argv.slice(2), found = require(library);
const entries = {
    bibtex: () => Object.values(found.parseBibFile(text).entries$).map((entry) => Object.fromEntries(
        Object.entries(entry.fields).map(([name, value]) => [name, found.normalizeFieldValue(value)]))),
    "bibtex-parse": () => found.entries(text).map((entry) => Object.fromEntries(
        Object.entries(entry).map(([name, value]) => [name.toLowerCase(), value]))),
    "astrocite-bibtex": () => found.parse(text).map((entry) => ({ title: entry.title, month: entry.issued?.["date-parts"][0][1],
        year: entry.issued?.["date-parts"][0][0] })),
};
const tags = () => (found.default ?? found).toJSON(text).filter((entry) => entry.entryTags).map((entry) => entry.entryTags);
try {
    console.log((entries[library] ?? tags)().map(({ title, month, year }) => `[${title} ${month || "-"} ${year || "-"}]`).join(""));
} catch {
    console.log("error");
}
JS
cat >read.py <<'PY'
import bibtexparser, pybtex.database, sys

library, text = sys.argv[1:]
if library == "pybtex":
    entries = [entry.fields for entry in pybtex.database.parse_string(text, "bibtex").entries.values()]
else:
    entries = bibtexparser.loads(text, bibtexparser.bparser.BibTexParser(common_strings=True)).entries
print("".join(f'[{entry["title"]} {entry.get("month", "-")} {entry.get("year", "-")}]' for entry in entries))
PY
LIBRARIES=(bibtexparser pybtex bibtex-parse astrocite-bibtex bibtex bibtex-parse-js @orcid/bibtex-parse-js)
# each TEXT, and what each library finds
each() {
    local library text=$1 found
    for library in "${LIBRARIES[@]}"; do
        shift
        if [[ $library == bibtexparser || $library == pybtex ]]; then
            found=$(v/bin/python read.py "$library" "$text")
        else
            found=$(node read.js "$library" "$text")
        fi
        seen "$library: $text" "$1" "$found"
    done
}
found='[A - 2020]'
each '@article{k, title = {A}, year = 2020}' "$found" "$found" "$found" "$found" "$found" "$found" "$found"
each '@article{k, title = "A {"}q{"} b", year = 2020}' '[A {"}q{"} b - 2020]' '[A {"}q{"} b - 2020]' '[A "q" b - 2020]' \
    '[A "q" b - 2020]' '[A "q" b - 2020]' '[A { - -]' '[A { - -]'
each '@article(k, title = {A}, year = 2020)' '[A - 2020]' '[A - 2020]' '[A - 2020]' '[A - 2020]' error error error
each '@string{j = "J"}@article{k, title = j # " X"}' '[J X - -]' '[J X - -]' '[J X - -]' '[J X - -]' '[J X - -]' error error
each '@article{k, title = {A}, month = jan}' '[A January -]' '[A January -]' '[A January -]' '[A 01 -]' error '[A jan -]' \
    '[A jan -]'
each '@article{k, title = {a@b.example}}' '[a@b.example - -]' '[a@b.example - -]' '[a@b.example - -]' '[a@b.example - -]' error \
    '[a@b.example - -]' '[a@b.example - -]'
