#!/usr/bin/env bash
# a gauge that is not a number, over OTLP in JSON
#
# OTLP/HTTP follows the mapping of Protocol Buffers to JSON: NaN and infinities of a double are the strings "NaN",
# "Infinity" and "-Infinity". A gauge of a ratio 0/0 is a usual case.
# Guess: the serializer of OpenTelemetry for JavaScript writes these strings, and the collector reads them.
# Seen: @opentelemetry/otlp-transformer 0.223.1 (npm) writes null. The reader of the collector, pdata 1.71.0 (Go), refuses
# the whole content for one null, with all other metrics in it. It reads the strings. The same serializer writes an
# attribute of 1e20 as an integer that no reader can hold, with the same end.
# A program of Node loses its metrics while one of them is NaN. A server that reads OTLP should take null for "no value".
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install @opentelemetry/api@1.9.1 @opentelemetry/otlp-transformer@0.223.1 @opentelemetry/sdk-metrics@2.12.1
cat >write.js <<'JS'
const { JsonMetricsSerializer } = require("@opentelemetry/otlp-transformer");
const { MeterProvider, MetricReader } = require("@opentelemetry/sdk-metrics");
class Reader extends MetricReader {
    async onForceFlush() {}
    async onShutdown() {}
}
const reader = new Reader();
const meter = new MeterProvider({ readers: [reader] }).getMeter("a");
meter.createObservableGauge("one").addCallback((result) => result.observe(1));
meter.createObservableGauge("two").addCallback((result) => result.observe(eval(process.argv[2]), eval(process.argv[3])));
reader.collect().then(({ resourceMetrics }) => {
    process.stdout.write(Buffer.from(JsonMetricsSerializer.serializeRequest(resourceMetrics)));
});
JS
node write.js 2.5 '({ a: 3 })' >plain.json
node write.js NaN '({ a: 3 })' >nan.json
node write.js 2.5 '({ a: 1e20 })' >large.json
sed 's/"asDouble":null/"asDouble":"NaN"/' nan.json >string.json
seen 'npm writes' '"asDouble":null' "$(grep -o '"asDouble":null' nan.json)"
seen 'npm writes of 1e20' '"intValue":100000000000000000000' "$(grep -o '"intValue":1[0-9]*' large.json)"

mkdir go # apart from the packages of npm
cd go
cat >go.mod <<'GO'
module finding
go 1.26
require go.opentelemetry.io/collector/pdata v1.71.0
GO
cat >main.go <<'GO'
package main

import (
	"fmt"
	"os"

	"go.opentelemetry.io/collector/pdata/pmetric"
)

func main() {
	content, err := os.ReadFile(os.Args[1])
	if err != nil {
		panic(err)
	}
	metrics, err := (&pmetric.JSONUnmarshaler{}).UnmarshalMetrics(content)
	if err != nil {
		fmt.Println("refused")
		return
	}
	fmt.Println(metrics.MetricCount(), "metrics")
}
GO
go mod tidy 2>/dev/null
go build -o read .
seen 'pdata: plain numbers' '2 metrics' "$(./read ../plain.json)"
seen 'pdata: NaN, as written' refused "$(./read ../nan.json)"
seen 'pdata: NaN, as a string' '2 metrics' "$(./read ../string.json)"
seen 'pdata: the attribute 1e20' refused "$(./read ../large.json)"
