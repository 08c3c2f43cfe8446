#!/usr/bin/env bash
# baggage: formula=1+2
#
# W3C Baggage, "value": it is percent-encoded, and the plus sign (%x2B) is among the characters of baggage-octet, which
# may stand as they are. A blank is %20.
# Guess: each library of OpenTelemetry reads the plus sign as such.
# Seen: opentelemetry-api 1.45.2 (Python) reads a blank in its place, and writes + for a blank, as in forms of HTML. So
# a blank from Python is a plus sign in @opentelemetry/core 2.12.1 (npm), in Go 1.47.0 and in Java 1.50.0; and a plus sign
# from Go, which writes it bare, is a blank in Python. Python also takes a property (;ttl=1) for a part of the value.
# A proxy that reads or writes baggage should write %2B and %20, which all four read alike.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install opentelemetry-api==1.45.2
cat >read.py <<'PY'
import sys
from opentelemetry import baggage
from opentelemetry.baggage.propagation import W3CBaggagePropagator
context = W3CBaggagePropagator().extract({"baggage": sys.argv[1]})
written = {}
W3CBaggagePropagator().inject(written, context)
print(baggage.get_baggage("a", context), "->", written["baggage"])
PY
seen 'Python: a=1%2B2' '1+2 -> a=1%2B2' "$(v/bin/python read.py a=1%2B2)"
seen 'Python: a=1+2' '1 2 -> a=1+2' "$(v/bin/python read.py a=1+2)"
seen 'Python: a=1%202' '1 2 -> a=1+2' "$(v/bin/python read.py a=1%202)"
seen 'Python: a=1;ttl=1' '1;ttl=1 -> a=1%3Bttl%3D1' "$(v/bin/python read.py 'a=1;ttl=1')"

npm_install @opentelemetry/api@1.9.1 @opentelemetry/core@2.12.1
js() {
    node -e '
        const { W3CBaggagePropagator } = require("@opentelemetry/core");
        const { ROOT_CONTEXT, propagation } = require("@opentelemetry/api");
        const fields = { keys: Object.keys, get: (carrier, name) => carrier[name] };
        const context = new W3CBaggagePropagator().extract(ROOT_CONTEXT, { baggage: process.argv[1] }, fields);
        console.log(propagation.getBaggage(context).getEntry("a").value);' "$1"
}
seen 'npm: a=1+2' 1+2 "$(js a=1+2)"
seen 'npm: a=1;ttl=1' 1 "$(js 'a=1;ttl=1')"

cat >go.mod <<'GO'
module finding
go 1.26
require go.opentelemetry.io/otel v1.47.0
GO
cat >main.go <<'GO'
package main

import (
	"context"
	"fmt"
	"os"

	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/propagation"
)

func main() {
	carrier := propagation.MapCarrier{"baggage": os.Args[1]}
	found := propagation.Baggage{}.Extract(context.Background(), carrier)
	propagation.Baggage{}.Inject(found, carrier)
	fmt.Println(baggage.FromContext(found).Member("a").Value(), "->", carrier["baggage"])
}
GO
go mod tidy 2>/dev/null
go build -o read .
seen 'Go: a=1+2' '1+2 -> a=1+2' "$(./read a=1+2)"
seen 'Go: a=1%2B2' '1+2 -> a=1+2' "$(./read a=1%2B2)"

maven_install io.opentelemetry:opentelemetry-api:1.50.0
cat >Read.java <<'JAVA'
import io.opentelemetry.api.baggage.Baggage;
import io.opentelemetry.api.baggage.propagation.W3CBaggagePropagator;
import io.opentelemetry.context.Context;
import io.opentelemetry.context.propagation.TextMapGetter;
import java.util.Map;

public class Read implements TextMapGetter<Map<String, String>> {
    public Iterable<String> keys(Map<String, String> carrier) {
        return carrier.keySet();
    }

    public String get(Map<String, String> carrier, String name) {
        return carrier.get(name);
    }

    public static void main(String[] values) {
        var propagator = W3CBaggagePropagator.getInstance();
        var context = propagator.extract(Context.root(), Map.of("baggage", values[0]), new Read());
        System.out.println(Baggage.fromContext(context).getEntryValue("a"));
    }
}
JAVA
seen 'Java: a=1+2' 1+2 "$(java -cp 'jars/*' Read.java a=1+2)"
