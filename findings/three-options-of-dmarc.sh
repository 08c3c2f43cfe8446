#!/usr/bin/env bash
# v=DMARC1; p=none; fo=1:d:s, and v=DKIM1; x=1; p=QUJD
#
# RFC 7489, section 6.3: the value of fo is a list with colons between its options; a tag that a receiver does not know is ignored. RFC
# 6376, section 3.2: blanks may stand on both sides of the equal sign in a list of tags, and tags that are not known have to be ignored.
# Guess: parsers of such records read what mail servers take.
# Seen: dmarc-parse 1.2.1 (npm) has an error for fo=1:d:s, and drops it, as it does x=1 and np=reject, with which RFC 9091 states a policy
# for names that do not exist. dkim-key 1.3.0 (npm) refuses a key for the tag x, and for `v = DKIM1`. dkimpy 1.1.8 (Python) reads both, and
# dmarc 1.2.1 (PyPI) the three options.
# A check by the two calls records wrong that work.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install dmarc-parse@1.2.1 dkim-key@1.3.0
pip_install dkimpy==1.1.8 dmarc==1.2.1
cat >check.cjs <<'JS'
const checks = {
    "dmarc-parse": (record) => {
        const { tags, messages } = require("dmarc-parse")(record);
        return [...Object.keys(tags), ...(messages ?? [])].join(" ");
    },
    "dkim-key": (record) => require("dkim-key").parse(record).key.toString(),
};
for (const text of process.argv.slice(2)) {
    const [library, record] = text.split(": ");
    try {
        console.log(checks[library](record));
    } catch (error) {
        console.log(error.message);
    }
}
JS
cat >check.py <<'PY'
import sys
from dkim.util import parse_tag_value
from dmarc import DMARCPolicy, Error
for library, record in (text.split(": ") for text in sys.argv[1:]):
    try:
        if library == "dmarc":
            DMARCPolicy(record=record, domain="a.example")
            print("ok")
        else:
            print(parse_tag_value(record.encode())[b"p"].decode())
    except Error as error:
        print(error)
PY
# each COMMAND CASE EXPECTED...: COMMAND runs once, with all cases, and prints a line for each
each() {
    local command cases=() expected=() found i
    read -ra command <<<"$1"
    shift
    while (($#)); do
        cases+=("$1")
        expected+=("$2")
        shift 2
    done
    mapfile -t found < <("${command[@]}" "${cases[@]}")
    for i in "${!cases[@]}"; do seen "${command[*]:1} ${cases[i]}" "${expected[i]}" "${found[i]-}"; done
}
each 'node check.cjs' \
    'dmarc-parse: v=DMARC1; p=none; fo=1' 'v p fo' \
    'dmarc-parse: v=DMARC1; p=none; fo=1:d:s' "v p Invalid value for 'fo': '1:d:s', must be one of: 0, 1, d, s" \
    'dmarc-parse: v=DMARC1; p=none; x=1' "v p Unknown tag 'x'" \
    'dmarc-parse: v=DMARC1; p=none; np=reject' "v p Unknown tag 'np'" \
    'dkim-key: v=DKIM1; p=QUJD' ABC \
    'dkim-key: v=DKIM1; x=1; p=QUJD' 'Unknown field name "x"' \
    'dkim-key: v = DKIM1; p = QUJD' 'Unknown field name "v "'
each 'v/bin/python check.py' \
    'dmarc: v=DMARC1; p=none; fo=1:d:s' ok \
    'dmarc: v=DMARC1; p=none; x=1' ok \
    'dmarc: v=DMARC1; p=none; np=reject' ok \
    'dkimpy: v=DKIM1; x=1; p=QUJD' QUJD \
    'dkimpy: v = DKIM1; p = QUJD' QUJD
