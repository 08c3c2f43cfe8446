#!/usr/bin/env bash
# {"http.requests",path="/a"} 1
#
# Prometheus, "Exposition formats": names with other characters than letters, digits, colons and underscores stand in quotes
# as the first element within the braces.
# Guess: a parser of this format reads such a line, or refuses it.
# Seen: parse-prometheus-text-format 1.1.1 (npm) drops the line, and gives the others, without an error. prometheus-client
# 0.26.0 (Python) reads it.
# Metrics of OpenTelemetry, whose names have dots, are missing in what a tool on this library shows.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install parse-prometheus-text-format@1.1.1
pip_install prometheus-client==0.26.0
TEXT=$'{"http.requests",path="/a"} 1\nup 1\n'
seen prometheus-client 'http.requests up' "$(v/bin/python -c '
import sys
from prometheus_client.parser import text_string_to_metric_families
print(*(family.name for family in text_string_to_metric_families(sys.argv[1])))' "$TEXT")"
seen parse-prometheus-text-format up "$(node -p '
    const found = require("parse-prometheus-text-format");
    (found.default ?? found)(process.argv[1]).map((family) => family.name).join(" ")' "$TEXT")"
