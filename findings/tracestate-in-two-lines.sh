#!/usr/bin/env bash
# tracestate: a=1
# tracestate: b=2
#
# W3C Trace Context, "tracestate Header Field Values": the field may come in several lines, which are one list (RFC
# 9110, section 5.3), and list members may be empty.
# Guess: the propagators of OpenTelemetry, which serve HTTP most of all, know lists of HTTP.
# Seen: Go 1.47.0 and Java 1.50.0 pass on the first line only; opentelemetry-api 1.45.2 (Python) passes on both. With an
# empty member, Java drops the whole list for "a=1,,b=2", and Go for "a=1, ,b=2"; Python reads both, too.
# A proxy has to join the lines and leave out empty members before a program sees them, or vendors lose their state.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
PARENT=00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
export PARENT

pip_install opentelemetry-api==1.45.2
cat >pass.py <<'PY'
import os, sys
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
written = {}
read = {"traceparent": [os.environ["PARENT"]], "tracestate": sys.argv[1:]}
TraceContextTextMapPropagator().inject(written, TraceContextTextMapPropagator().extract(read))
print(written.get("tracestate", "none"))
PY
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
	"net/http"
	"os"

	"go.opentelemetry.io/otel/propagation"
)

func main() {
	read := http.Header{"Traceparent": {os.Getenv("PARENT")}, "Tracestate": os.Args[1:]}
	written := http.Header{}
	found := propagation.TraceContext{}.Extract(context.Background(), propagation.HeaderCarrier(read))
	propagation.TraceContext{}.Inject(found, propagation.HeaderCarrier(written))
	fmt.Println(cmp.Or(written.Get("Tracestate"), "none"))
}
GO
go mod tidy 2>/dev/null
go build -o pass .
maven_install io.opentelemetry:opentelemetry-api:1.50.0
cat >Pass.java <<'JAVA'
import io.opentelemetry.api.trace.propagation.W3CTraceContextPropagator;
import io.opentelemetry.context.Context;
import io.opentelemetry.context.propagation.TextMapGetter;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;

public class Pass implements TextMapGetter<Map<String, List<String>>> {
    public Iterable<String> keys(Map<String, List<String>> carrier) {
        return carrier.keySet();
    }

    public String get(Map<String, List<String>> carrier, String name) {
        return carrier.get(name).get(0);
    }

    public Iterator<String> getAll(Map<String, List<String>> carrier, String name) {
        return carrier.get(name).iterator();
    }

    public static void main(String[] lines) {
        var read = Map.of("traceparent", List.of(System.getenv("PARENT")), "tracestate", List.of(lines));
        var written = new HashMap<String, String>();
        var propagator = W3CTraceContextPropagator.getInstance();
        propagator.inject(propagator.extract(Context.root(), read, new Pass()), written, Map::put);
        System.out.println(written.getOrDefault("tracestate", "none"));
    }
}
JAVA
# pass LIBRARY OF_TWO_LINES OF_AN_EMPTY_MEMBER OF_A_BLANK_ONE COMMAND...
pass() {
    seen "$1: one line" a=1,b=2 "$("${@:5}" a=1,b=2)"
    seen "$1: two lines" "$2" "$("${@:5}" a=1 b=2)"
    seen "$1: a=1,,b=2" "$3" "$("${@:5}" a=1,,b=2)"
    seen "$1: a=1, ,b=2" "$4" "$("${@:5}" 'a=1, ,b=2')"
}
pass Python a=1,b=2 a=1,b=2 a=1,b=2 v/bin/python pass.py
pass Go a=1 a=1,b=2 none ./pass
pass Java a=1 none none java -cp 'jars/*' Pass.java
