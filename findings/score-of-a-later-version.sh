#!/usr/bin/env bash
# CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H
#
# FIRST, "CVSS v3.1 Specification", section 7.4: these metrics make 9.8, as they do in version 3.0, of which 3.1 kept the metrics.
# Guess: a library for CVSS 3 gives 9.8, or an error for a version that it does not know.
# Seen: cvss 1.0.5 (npm) gives 0, and no error, for this and each other vector of version 3.1, and for those of version 2. Of the
# same vector of version 3.0 it makes 9.8. ae-cvss-calculator 1.0.13 (npm), cvss 3.6 and cvsslib 1.0.0 (Python) make 9.8 of both.
# A report in which each new finding is harmless looks as a good one does.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install cvss@1.0.5 ae-cvss-calculator@1.0.13
pip_install cvss==3.6 cvsslib==1.0.0
METRICS=AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H
for version in 3.0 3.1; do
    vector=CVSS:$version/$METRICS
    seen "ae-cvss-calculator: $version" 9.8 "$(node -p '
        require("ae-cvss-calculator").fromVector(process.argv[1]).calculateScores().base' $vector)"
    seen "cvss of Python: $version" 9.8 "$(v/bin/python -c 'import cvss, sys; print(cvss.CVSS3(sys.argv[1]).scores()[0])' $vector)"
done
seen 'cvsslib: 3.1' 9.8 "$(v/bin/python -c '
import cvsslib, sys
print(cvsslib.calculate_vector(sys.argv[1], cvsslib.cvss31)[0])' CVSS:3.1/$METRICS)"
score() {
    node -p 'require("cvss").getBaseScore(process.argv[1])' "$1"
}
seen 'cvss: 3.0' 9.8 "$(score CVSS:3.0/$METRICS)"
seen 'cvss: 3.1' 0 "$(score CVSS:3.1/$METRICS)"
seen 'cvss: 2' 0 "$(score AV:N/AC:L/Au:N/C:C/I:C/A:C)"
