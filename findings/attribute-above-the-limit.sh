#!/usr/bin/env bash
# OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT=2, and a third attribute
#
# OpenTelemetry, "Common specification concepts", Attribute Limits: where an attribute would exceed the limit, the SDK must
# discard that attribute.
# Guess: a span keeps the first two attributes.
# Seen: opentelemetry-sdk 1.45.2 (Python) keeps the last two, and drops the oldest for each new one. @opentelemetry/
# sdk-trace-base 2.12.1 (npm) and Go 1.47.0 keep the first two. All three count the one that is dropped.
# The attributes that a span begins with, the route and the method of a request, are lost to a loop that adds others.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
export OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT=2

pip_install opentelemetry-sdk==1.45.2
npm_install @opentelemetry/sdk-trace-base@2.12.1
cat >go.mod <<'GO'
module finding
go 1.26
require go.opentelemetry.io/otel/sdk v1.47.0
GO
cat >main.go <<'GO'
package main

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/trace"
)

func main() {
	_, span := trace.NewTracerProvider().Tracer("x").Start(context.Background(), "x")
	for _, name := range []string{"first", "second", "third"} {
		span.SetAttributes(attribute.Int(name, 1))
	}
	read := span.(trace.ReadOnlySpan)
	for _, one := range read.Attributes() {
		fmt.Print(one.Key, " ")
	}
	fmt.Println(read.DroppedAttributes())
}
GO
go mod tidy 2>/dev/null
seen 'Go' 'first second 1' "$(go run .)"
seen 'JavaScript' 'first second 1' "$(node -e '
const { BasicTracerProvider } = require("@opentelemetry/sdk-trace-base");
const span = new BasicTracerProvider().getTracer("x").startSpan("x");
for (const name of ["first", "second", "third"]) span.setAttribute(name, 1);
console.log(...Object.keys(span.attributes), span.droppedAttributesCount);')"
seen 'Python' 'second third 1' "$(v/bin/python -c '
from opentelemetry.sdk.trace import TracerProvider
span = TracerProvider().get_tracer("x").start_span("x")
for name in ("first", "second", "third"):
    span.set_attribute(name, 1)
print(*span.attributes, span.dropped_attributes)' 2>/dev/null)"
