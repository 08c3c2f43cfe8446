#!/usr/bin/env bash
# counter.add(1, { "a.b": "x", a_b: "y" }), in metrics for Prometheus
#
# OpenTelemetry, "Prometheus and OpenMetrics Compatibility": characters that a label may not have become _; where two attributes so get the
# same name, their values have to be joined with a semicolon. Prometheus: a series has each label once, and a page each metric once.
# Guess: the exporter of OpenTelemetry for Node writes one label, a_b="x;y", or drops one.
# Seen: @opentelemetry/exporter-prometheus 0.223.0 (npm) writes both labels, and also the counters `a` and `a_total` as two families of one
# name. prometheus_client 0.26.0 (Python) refuses the whole page for the labels, and gives two families for the names.
# Attributes of both spellings are usual where two conventions meet, and one such call takes all metrics of the program away.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install @opentelemetry/exporter-prometheus@0.223.0 @opentelemetry/sdk-metrics@2.12.1 @opentelemetry/api@1.9.1
pip_install prometheus_client==0.26.0
cat >write.cjs <<'JS'
const { PrometheusSerializer } = require("@opentelemetry/exporter-prometheus");
const { MeterProvider, MetricReader } = require("@opentelemetry/sdk-metrics");

class Reader extends MetricReader {
    async onForceFlush() {}
    async onShutdown() {}
}

// counters as NAME, or NAME with attributes in JSON
async function write(counters) {
    const reader = new Reader();
    const meter = new MeterProvider({ readers: [reader] }).getMeter("m");
    for (const counter of counters) {
        const [name, attributes] = counter.split(" ");
        meter.createCounter(name).add(1, JSON.parse(attributes ?? "{}"));
    }
    const { resourceMetrics } = await reader.collect();
    const page = new PrometheusSerializer("", false, undefined, true, true).serialize(resourceMetrics);
    return page.split("\n").filter((line) => line && !/^# (HELP|UNIT)|target_info/.test(line)).join("\n") + "\n";
}
write(process.argv.slice(2)).then((page) => process.stdout.write(page));
JS
read_python() {
    v/bin/python -c '
import sys
from prometheus_client.parser import text_string_to_metric_families
try:
    print(*(sample.name for family in text_string_to_metric_families(sys.stdin.read()) for sample in family.samples))
except ValueError as error:
    print(error)'
}
page() { node write.cjs "$@" | tr '\n' '|'; }
seen 'a.b' '# TYPE c_total counter|c_total{a_b="x"} 1|' "$(page 'c {"a.b":"x"}')"
seen 'a.b and a_b' '# TYPE c_total counter|c_total{a_b="x",a_b="y"} 1|' "$(page 'c {"a.b":"x","a_b":"y"}')"
seen 'a.b and a_b, read' 'Invalid labels: a_b="x",a_b="y"' "$(node write.cjs 'c {"a.b":"x","a_b":"y"}' d | read_python)"
seen 'a and a_total' '# TYPE a_total counter|a_total 1|# TYPE a_total counter|a_total 1|' "$(page a a_total)"
seen 'a and a_total, read' 'a_total a_total' "$(node write.cjs a a_total | read_python)"
