#!/usr/bin/env bash
# traceparent: 01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-x
#
# W3C Trace Context, "Versioning of traceparent": of a higher version, a receiver reads the parts of version 00, if they are
# there, whatever follows behind a dash, and goes on with the trace in version 00.
# Guess: a library that is named after this field goes on with the trace.
# Seen: traceparent 1.0.0 (npm) begins another trace. Its fromString reads the field, drops the rest, and writes it as
# version 01, without the rest that this version may need. opentelemetry-api 1.45.2 (Python) goes on with the trace.
# The day a first client sends version 01, its traces end at services on this library.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install traceparent@1.0.0
pip_install opentelemetry-api==1.45.2
PARTS=0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01
js() {
    node -p '
        const found = require("traceparent").startOrResume(process.argv[1], { transactionSampleRate: 1 });
        found.toString().includes("0af7651916cd43dd8448eb211c80319c")' "$1"
}
python() {
    v/bin/python -c '
import sys
from opentelemetry import trace
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
context = TraceContextTextMapPropagator().extract({"traceparent": sys.argv[1]})
print(f"{trace.get_current_span(context).get_span_context().trace_id:032x}" == sys.argv[1][3:35])' "$1"
}
seen 'traceparent goes on: version 00' true "$(js 00-$PARTS)"
seen 'traceparent goes on: version 01' false "$(js 01-$PARTS-x)"
seen 'traceparent writes version 01' 01-$PARTS \
    "$(node -p 'require("traceparent").fromString(process.argv[1]).toString()' 01-$PARTS-x)"
seen 'opentelemetry-api goes on: version 00' True "$(python 00-$PARTS)"
seen 'opentelemetry-api goes on: version 01' True "$(python 01-$PARTS-x)"
