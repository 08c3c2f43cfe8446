#!/usr/bin/env bash
# h_bucket{server="a",le="1"} 1
# h_bucket{server="b",le="1"} 4
#
# Exposition formats of Prometheus (prometheus.io), "Text format details": each set of labels besides `le` is a
# histogram of its own, with its own count and sum, and summaries are alike.
# Guess: a parser that builds histograms gives two, with their labels.
# Seen: parse-prometheus-text-format 1.1.1 (npm) gives one without labels, with the buckets of the last server, and with
# neither count nor sum as soon as there is any label. It treats summaries alike. The parser of prometheus-client 0.26.0
# (Python) keeps every line with its labels.
# AFPA's own times of servers have labels: a dashboard that reads them by this library shows those of one server as if
# they were all.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

cat >one <<'TEXT'
# TYPE h histogram
h_bucket{le="1"} 1
h_bucket{le="+Inf"} 2
h_sum 3
h_count 2
TEXT
cat >two <<'TEXT'
# TYPE h histogram
h_bucket{server="a",le="1"} 1
h_bucket{server="a",le="+Inf"} 2
h_sum{server="a"} 3
h_count{server="a"} 2
h_bucket{server="b",le="1"} 4
h_bucket{server="b",le="+Inf"} 5
h_sum{server="b"} 6
h_count{server="b"} 5
TEXT
cat >summaries <<'TEXT'
# TYPE s summary
s{server="a",quantile="0.5"} 1
s_sum{server="a"} 3
s_count{server="a"} 2
s{server="b",quantile="0.5"} 4
s_sum{server="b"} 6
s_count{server="b"} 7
TEXT
npm_install parse-prometheus-text-format@1.1.1
js() {
    node -p '
        const text = require("fs").readFileSync(process.argv[1], "utf8");
        JSON.stringify(require("parse-prometheus-text-format")(text)[0].metrics)' "$1"
}
seen 'one histogram' '[{"buckets":{"1":"1","+Inf":"2"},"count":"2","sum":"3"}]' "$(js one)"
seen 'two, with labels' '[{"buckets":{"1":"4","+Inf":"5"}}]' "$(js two)"
seen 'two summaries' '[{"quantiles":{"0.5":"4"}}]' "$(js summaries)"

pip_install prometheus-client==0.26.0
cat >count.py <<'PY'
from prometheus_client.parser import text_string_to_metric_families
[family] = text_string_to_metric_families(open("two").read())
print(*(f'{sample.labels["server"]}={sample.value}' for sample in family.samples if sample.name == "h_count"))
PY
seen 'prometheus-client, counts' 'a=2 b=5' "$(v/bin/python count.py)"
