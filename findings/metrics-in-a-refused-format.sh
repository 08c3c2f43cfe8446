#!/usr/bin/env bash
# Accept: text/plain;version=0.0.4, application/openmetrics-text;version=1.0.0;q=0
#
# RFC 9110, section 12.4.2: a weight of 0 is a refusal, and the larger of two weights is the wish of the client.
# Guess: the exposition of metrics for Python chooses the format by weight; Prometheus itself sends weights.
# Seen: prometheus_client 0.26.0 (Python) gives OpenMetrics wherever the field names it, with any weight, also 0. It does
# not know the name in capitals (types of media have no case), and gives the plain format for that.
# A scraper that lists both gets the one it wants least, with other names for its counters; it should list one format.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install prometheus_client==0.26.0
cat >ask.py <<'PY'
import sys
from prometheus_client import CollectorRegistry, Counter, make_wsgi_app
registry = CollectorRegistry()
Counter("requests", "all", registry=registry)
def start(status, fields):
    print(status, dict(fields)["Content-Type"].split(";")[0])
environment = {"REQUEST_METHOD": "GET", "PATH_INFO": "/", "QUERY_STRING": "", "HTTP_ACCEPT": sys.argv[1]}
make_wsgi_app(registry)(environment, start)
PY
PLAIN='text/plain;version=0.0.4'
OPEN='application/openmetrics-text;version=1.0.0'
seen 'the plain one' '200 OK text/plain' "$(v/bin/python ask.py "$PLAIN")"
seen 'the plain one, and OpenMetrics with 0.1' '200 OK application/openmetrics-text' \
    "$(v/bin/python ask.py "$PLAIN;q=0.9, $OPEN;q=0.1")"
seen 'the plain one, and OpenMetrics with 0' '200 OK application/openmetrics-text' \
    "$(v/bin/python ask.py "$PLAIN, $OPEN;q=0")"
seen 'OpenMetrics, in capitals' '200 OK text/plain' "$(v/bin/python ask.py "${OPEN^^}")"
