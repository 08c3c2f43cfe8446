#!/usr/bin/env bash
# # TYPE requests counter
# requests 1
#
# The text format of Prometheus (version 0.0.4) lets a counter have any name; OpenMetrics 1.0 asks for the end
# `_total`.
# Guess: a reader of the old format gives the name that stands on the line.
# Seen: text_string_to_metric_families of prometheus-client 0.26.0 (Python) gives `requests_total`, which stands
# nowhere. parse-prometheus-text-format 1.1.1 (npm) gives `requests`.
# A check of a server's figures that was written with one of the two finds no such name with the other, or with
# `grep`. Names that end with _total are read alike by both.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install prometheus-client==0.26.0
python() {
    v/bin/python -c '
import sys
from prometheus_client.parser import text_string_to_metric_families as parse
print([sample.name for family in parse(sys.stdin.read()) for sample in family.samples][0])'
}
npm_install parse-prometheus-text-format@1.1.1
npm() {
    node -e '
        const parse = require("parse-prometheus-text-format");
        console.log(parse(require("fs").readFileSync(0, "utf8"))[0].name);'
}
text() { printf '# TYPE %s %s\n%s 1\n' "$1" "$2" "$1"; }
seen 'prometheus-client: gauge requests' requests "$(text requests gauge | python)"
seen 'prometheus-client: counter requests' requests_total "$(text requests counter | python)"
seen 'prometheus-client: counter requests_total' requests_total "$(text requests_total counter | python)"
seen '...-text-format: counter requests' requests "$(text requests counter | npm)"
seen '...-text-format: counter requests_total' requests_total "$(text requests_total counter | npm)"
