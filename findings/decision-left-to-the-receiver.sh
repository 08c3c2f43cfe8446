#!/usr/bin/env bash
# b3: 80f198ee56343ba864fe8b2a57d3eff7-e457b5a2e4d86bd1
#
# B3 propagation, "Sampling State": without the third part the decision is left to the receiver, in one field as in several.
# OpenTelemetry, "Propagators API", B3: the same two forms.
# Guess: OpenTelemetry takes the two forms for the same, and the same in each language.
# Seen: opentelemetry-propagator-b3 1.45.1 (Python) takes it for sampled, and the same trace in X-B3-TraceId and X-B3-SpanId for not
# sampled. @opentelemetry/propagator-b3 2.12.0 (npm) and go.opentelemetry.io/contrib/propagators/b3 1.47.0 (Go) take both for not
# sampled.
# Samplers that follow the parent, as is the default, record all in one program, and nothing in the next.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

TRACE=80f198ee56343ba864fe8b2a57d3eff7 SPAN=e457b5a2e4d86bd1
npm_install @opentelemetry/api@1.9.1 @opentelemetry/propagator-b3@2.12.0
pip_install opentelemetry-propagator-b3==1.45.1 opentelemetry-api==1.45.2
cat >go.mod <<'GO'
module finding
go 1.26
require go.opentelemetry.io/contrib/propagators/b3 v1.47.0
GO
cat >main.go <<'GO'
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"

	"go.opentelemetry.io/contrib/propagators/b3"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

func main() {
	fields := propagation.HeaderCarrier(http.Header{})
	for i := 1; i < len(os.Args); i += 2 {
		fields.Set(os.Args[i], os.Args[i+1])
	}
	found := trace.SpanContextFromContext(b3.New().Extract(context.Background(), fields))
	fmt.Println(found.TraceID(), int(found.TraceFlags()))
}
GO
go mod tidy 2>/dev/null
go build -o read_go .
# Each reads names and values of fields.
read_js() {
    node -e '
        const { ROOT_CONTEXT, defaultTextMapGetter, trace } = require("@opentelemetry/api");
        const { B3Propagator } = require("@opentelemetry/propagator-b3");
        const words = process.argv.slice(1), fields = {};
        while (words.length) fields[words.shift()] = words.shift();
        const found = trace.getSpanContext(new B3Propagator().extract(ROOT_CONTEXT, fields, defaultTextMapGetter));
        console.log(found.traceId, found.traceFlags);' "$@"
}
read_python() {
    v/bin/python -c '
import sys
from opentelemetry import trace
from opentelemetry.propagators.b3 import B3MultiFormat
fields = dict(zip(sys.argv[1::2], sys.argv[2::2]))
found = trace.get_current_span(B3MultiFormat().extract(fields)).get_span_context()
print(f"{found.trace_id:032x}", int(found.trace_flags))' "$@"
}
for library in read_js read_python ./read_go; do
    seen "${library#*_}: sampled" "$TRACE 1" "$($library b3 $TRACE-$SPAN-1)"
    seen "${library#*_}: not sampled" "$TRACE 0" "$($library b3 $TRACE-$SPAN-0)"
    seen "${library#*_}: open, in two fields" "$TRACE 0" "$($library x-b3-traceid $TRACE x-b3-spanid $SPAN)"
done
for library in read_js ./read_go; do
    seen "${library#*_}: open, in one field" "$TRACE 0" "$($library b3 $TRACE-$SPAN)"
done
seen 'python: open, in one field' "$TRACE 1" "$(read_python b3 $TRACE-$SPAN)"
