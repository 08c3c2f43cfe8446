#!/usr/bin/env bash
# LicenseRef-Own, Apache-2.0+ and mit, as licenses of SPDX
#
# SPDX 2.3, annex D: LicenseRef- and a name is a license that the list lacks; a plus sign behind any license means "or later";
# identifiers of the list match whatever their case is.
# Guess: libraries for expressions of SPDX find each of the three valid.
# Seen: get_spdx_licensing of license-expression 30.4.4 (Python) does not know LicenseRef-Own and Apache-2.0+, and
# reads mit. spdx-expression-parse 5.0.0 (npm) reads the first two, and refuses mit. Both read MIT or GPL-2.0+.
# A list of the parts of a program passes the one check or the other, as soon as it has a license of a maker's own.
# shellcheck disable=SC2016 # the quotes of a message
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install license-expression==30.4.4
npm_install spdx-expression-parse@5.0.0
python() {
    v/bin/python -c '
import license_expression, sys
print(*license_expression.get_spdx_licensing().validate(sys.argv[1]).errors or ["valid"])' "$1"
}
js() {
    node -e 'try { require("spdx-expression-parse")(process.argv[1]); console.log("valid") }
catch (error) { console.log(error.message) }' "$1"
}
seen 'license-expression: MIT or GPL-2.0+' valid "$(python 'MIT or GPL-2.0+')"
seen 'license-expression: mit' valid "$(python mit)"
seen 'license-expression: LicenseRef-Own' 'Unknown license key(s): LicenseRef-Own' "$(python LicenseRef-Own)"
seen 'license-expression: Apache-2.0+' 'Unknown license key(s): Apache-2.0+' "$(python Apache-2.0+)"
seen 'spdx-expression-parse: MIT or GPL-2.0+' valid "$(js 'MIT or GPL-2.0+')"
seen 'spdx-expression-parse: LicenseRef-Own' valid "$(js LicenseRef-Own)"
seen 'spdx-expression-parse: Apache-2.0+' valid "$(js Apache-2.0+)"
seen 'spdx-expression-parse: mit' 'Unexpected `m` at offset 0' "$(js mit)"
