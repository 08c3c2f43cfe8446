#!/usr/bin/env bash
# X-Amzn-Trace-Id: Root=1-5759e988-bd862e3fe1be46a994272793
#
# Elastic Load Balancing, "Request tracing": a balancer gives each request such a field, with Root alone, if the client sent none;
# X-Ray, "Tracing header": Root is the trace, and Parent the span, which whoever is the first does not have.
# Guess: the propagators of OpenTelemetry for this field go on with the balancer's trace.
# Seen: @opentelemetry/propagator-aws-xray 2.2.0 (npm), opentelemetry-propagator-aws-xray 1.0.2 (Python) and
# go.opentelemetry.io/contrib/propagators/aws 1.47.0 (Go) begin a trace of another number. With Parent, and without Sampled, Node
# begins another one, too.
# The number in the balancer's log is in no trace.
# shellcheck disable=SC2016 # templates of JavaScript
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

TRACE=1-5759e988-bd862e3fe1be46a994272793 SPAN=53995c3f42cd8ad8
npm_install @opentelemetry/api@1.9.1 @opentelemetry/core@2.12.0 @opentelemetry/propagator-aws-xray@2.2.0
pip_install opentelemetry-propagator-aws-xray==1.0.2 opentelemetry-api==1.45.2
cat >go.mod <<'GO'
module finding
go 1.26
require go.opentelemetry.io/contrib/propagators/aws v1.47.0
GO
cat >main.go <<'GO'
package main

import (
	"context"
	"fmt"
	"os"

	"go.opentelemetry.io/contrib/propagators/aws/xray"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

func main() {
	fields := propagation.MapCarrier{"X-Amzn-Trace-Id": os.Args[1]}
	found := trace.SpanContextFromContext(xray.Propagator{}.Extract(context.Background(), fields))
	if found.IsValid() {
		fmt.Println(found.TraceID(), found.SpanID())
	} else {
		fmt.Println("another trace")
	}
}
GO
go mod tidy 2>/dev/null
go build -o read_go .
read_js() {
    node -e '
        const { ROOT_CONTEXT, defaultTextMapGetter, trace } = require("@opentelemetry/api");
        const { AWSXRayPropagator } = require("@opentelemetry/propagator-aws-xray");
        const fields = { "x-amzn-trace-id": process.argv[1] };
        const found = trace.getSpanContext(new AWSXRayPropagator().extract(ROOT_CONTEXT, fields, defaultTextMapGetter));
        console.log(found ? `${found.traceId} ${found.spanId}` : "another trace");' "$1"
}
read_python() {
    v/bin/python -c '
import sys
from opentelemetry import trace
from opentelemetry.propagators.aws import AwsXRayPropagator
found = trace.get_current_span(AwsXRayPropagator().extract({"X-Amzn-Trace-Id": sys.argv[1]})).get_span_context()
print(f"{found.trace_id:032x} {found.span_id:016x}" if found.is_valid else "another trace")' "$1"
}
for library in read_js read_python ./read_go; do
    seen "${library#*_}: with Parent and Sampled" "5759e988bd862e3fe1be46a994272793 $SPAN" "$($library "Root=$TRACE;Parent=$SPAN;Sampled=1")"
    seen "${library#*_}: Root alone" 'another trace' "$($library "Root=$TRACE")"
    seen "${library#*_}: and Sampled" 'another trace' "$($library "Root=$TRACE;Sampled=1")"
done
seen 'js: and Parent' 'another trace' "$(read_js "Root=$TRACE;Parent=$SPAN")"
for library in read_python ./read_go; do
    seen "${library#*_}: and Parent" "5759e988bd862e3fe1be46a994272793 $SPAN" "$($library "Root=$TRACE;Parent=$SPAN")"
done
