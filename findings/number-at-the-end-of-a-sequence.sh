#!/usr/bin/env bash
# (1E) 12 (the end of the stream)
#
# RFC 7464, section 2.4: a number with nothing behind it may have been cut off, and a parser of JSON text sequences must drop it.
# Section 2.3: a text that cannot be read is no reason to give up the rest.
# Guess: libraries for such sequences give no number here, and go on behind a text that was cut off.
# Seen: jsonseq 1.0.0 (Python) gives 12, which may be the beginning of 1234, and ends with an error at a text that was cut off, as
# it stands where a program was started again. simplejsonseq 0.2.1 (Python) and json-text-sequence 4.0.3 (npm) name both, and go on.
# Traces of QUIC (qlog) are such sequences, and are cut off wherever a program ends.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install json-text-sequence@4.0.3
pip_install jsonseq==1.0.0 simplejsonseq==0.2.1
CUT=$'\x1e1\n\x1e12' AGAIN=$'\x1e{"a":\n\x1e{"b":2}\n'
read_js() {
    node -e '
        const { Parser } = require("json-text-sequence");
        const parser = new Parser(), found = [];
        parser.on("data", (value) => found.push(JSON.stringify(value)));
        parser.on("truncated", () => found.push("cut off"));
        parser.on("invalid", () => found.push("invalid"));
        parser.on("end", () => console.log(found.join(" ")));
        parser.end(process.argv[1]);' "$1"
}
read_jsonseq() {
    v/bin/python -c '
import io, json, sys
from jsonseq.decode import JSONSeqDecoder
try:
    print(*map(json.dumps, JSONSeqDecoder().decode(io.StringIO(sys.argv[1]))))
except json.JSONDecodeError:
    print("error")' "$1"
}
read_simplejsonseq() {
    v/bin/python -W ignore -c '
import io, json, simplejsonseq, sys
found = simplejsonseq.load(io.StringIO(sys.argv[1]))
print(*("invalid" if isinstance(value, simplejsonseq.InvalidJSON) else json.dumps(value) for value in found))' "$1"
}
seen 'json-text-sequence: 12' '1 cut off' "$(read_js "$CUT")"
seen 'simplejsonseq: 12' '1 invalid' "$(read_simplejsonseq "$CUT")"
seen 'jsonseq: 12' '1 12' "$(read_jsonseq "$CUT")"
seen 'json-text-sequence: a text that was cut off' 'invalid {"b":2}' "$(read_js "$AGAIN")"
seen 'simplejsonseq: a text that was cut off' 'invalid {"b": 2}' "$(read_simplejsonseq "$AGAIN")"
seen 'jsonseq: a text that was cut off' error "$(read_jsonseq "$AGAIN")"
