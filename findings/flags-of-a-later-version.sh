#!/usr/bin/env bash
# traceparent: 01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-10
#
# W3C Trace Context, "Versioning of traceparent": a field of a later version is read as one of version 00, and what one
# writes is of the version that one knows: two hexadecimal digits of flags, with unknown ones cleared.
# Guess: each library clears the flag 10, or passes it on as it is.
# Seen: @opentelemetry/core 2.12.1 (npm) writes 010: it puts a zero before flags of any size. The next program finds three
# digits, and begins another trace. Go 1.47.0 clears the flag; opentelemetry-api 1.45.2 (Python) passes it on.
# A proxy that passes a later version on must clear unknown flags itself, or traces end at programs of Node.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
ONE=4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7

npm_install @opentelemetry/api@1.9.1 @opentelemetry/core@2.12.1
js() {
    node -e '
        const { W3CTraceContextPropagator } = require("@opentelemetry/core");
        const { ROOT_CONTEXT } = require("@opentelemetry/api");
        const fields = {
            keys: Object.keys,
            get: (carrier, name) => carrier[name],
            set: (carrier, name, value) => (carrier[name] = value),
        };
        const propagator = new W3CTraceContextPropagator();
        const written = {};
        propagator.inject(propagator.extract(ROOT_CONTEXT, { traceparent: process.argv[1] }, fields), written, fields);
        console.log(written.traceparent ?? "none");' "$1"
}
seen 'npm: flags 01' "00-$ONE-01" "$(js "01-$ONE-01")"
written=$(js "01-$ONE-10")
seen 'npm: flags 10' "00-$ONE-010" "$written"
seen 'npm, of that' none "$(js "$written")"

pip_install opentelemetry-api==1.45.2
cat >pass.py <<'PY'
import sys
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
written = {}
context = TraceContextTextMapPropagator().extract({"traceparent": sys.argv[1]})
TraceContextTextMapPropagator().inject(written, context)
print(written.get("traceparent", "none"))
PY
seen 'Python: flags 10' "00-$ONE-10" "$(v/bin/python pass.py "01-$ONE-10")"
seen 'Python, of what npm wrote' none "$(v/bin/python pass.py "$written")"

cat >go.mod <<'GO'
module finding
go 1.26
require go.opentelemetry.io/otel v1.47.0
GO
cat >main.go <<'GO'
package main

import (
	"cmp"
	"context"
	"fmt"
	"os"

	"go.opentelemetry.io/otel/propagation"
)

func main() {
	written := propagation.MapCarrier{}
	read := propagation.MapCarrier{"traceparent": os.Args[1]}
	propagation.TraceContext{}.Inject(propagation.TraceContext{}.Extract(context.Background(), read), written)
	fmt.Println(cmp.Or(written["traceparent"], "none"))
}
GO
go mod tidy 2>/dev/null
go build -o pass .
seen 'Go: flags 10' "00-$ONE-00" "$(./pass "01-$ONE-10")"
seen 'Go, of what npm wrote' none "$(./pass "$written")"
