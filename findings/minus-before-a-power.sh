#!/usr/bin/env bash
# =-2^2
#
# OASIS, "OpenFormula 1.3", section 5.5: a minus before a number binds more tightly than ^, so that this is 4, and & less tightly than +.
# Sections 5.3 and 5.4: a number may begin with its point, or have an exponent, and a quote within a text is doubled. IF without a
# third value gives FALSE. Spreadsheets take "a" and "A" for equal.
# Guess: engines for formulas count as spreadsheets do.
# Seen: hot-formula-parser 4.0.0 (npm) makes -4 of it, 28 of 1+2&3+4, where 37 is right, and TRUE of IF(FALSE,1). It takes "a" and "A"
# for different, and refuses "x""y" and .5. fast-formula-parser 1.0.19 (npm) makes 4 and 37, takes "a" and "A" for different, and
# refuses .5. Both, and formulas 1.3.4 (Python), which has the rest right, refuse 1E3.
# A page shows another total than the spreadsheet that it was taken from.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install hot-formula-parser@4.0.0 fast-formula-parser@1.0.19
pip_install formulas==1.3.4
# count ENGINE FORMULA
count() {
    if [[ $1 == formulas ]]; then
        v/bin/python -c '
import formulas, sys
try:
    print(formulas.Parser().ast("=" + sys.argv[1])[1].compile()())
except formulas.errors.FormulaError:
    print("error")' "$2"
        return
    fi
    node -e '
        const [engine, formula] = process.argv.slice(1), library = require(engine);
        try {
            if (engine === "fast-formula-parser") {
                console.log(new library().parse(formula, { row: 1, col: 1, sheet: "a" }));
            } else {
                const { error, result } = new library.Parser().parse(formula);
                console.log(error ?? result);
            }
        } catch {
            console.log("error");
        }' "$1" "$2"
}
# each FORMULA FORMULAS FAST-FORMULA-PARSER HOT-FORMULA-PARSER
each() {
    seen "formulas: $1" "$2" "$(count formulas "$1")"
    seen '  fast-formula-parser' "$3" "$(count fast-formula-parser "$1")"
    seen '  hot-formula-parser' "$4" "$(count hot-formula-parser "$1")"
}
each '2*3' 6.0 6 6
each '-2^2' 4.0 4 -4
each '1+2&3+4' 37 37 28
each 'IF(FALSE,1)' False false true
each '"a"="A"' True false false
each '"x""y"' 'x"y' 'x"y' '#ERROR!'
each 1E3 error error '#ERROR!'
each .5 0.5 error '#ERROR!'
