#!/usr/bin/env bash
# one value of 5000, and the percentile 100
#
# HdrHistogram keeps values in classes, by its number of digits, and DDSketch by a relative error; both also keep the least and
# the greatest value as they were.
# Guess: no percentile is above the greatest value, as each library has that at hand.
# Seen: hdr-histogram-js 3.0.1 (npm) gives 5003 for each percentile, and 5000 for maxValue. @datadog/sketches-js 2.1.1 (npm)
# and ddsketch 3.0.1 (Python) give more than the greatest for 1, and 10.07 for 0 where the least value is 10. hdrhistogram
# 0.10.8 (Python) gives 5003 for both. tdigest 0.1.3 (npm) gives 5000.
# A report says that requests took longer than the longest one.
# shellcheck disable=SC2016 # templates of JavaScript
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install hdr-histogram-js@3.0.1 @datadog/sketches-js@2.1.1 tdigest@0.1.3
pip_install hdrhistogram==0.10.8 ddsketch==3.0.1
seen 'hdr-histogram-js' '5003 5000' "$(node -p '
const histogram = require("hdr-histogram-js").build();
histogram.recordValue(5000);
`${histogram.getValueAtPercentile(100)} ${histogram.maxValue}`')"
seen 'hdrhistogram of Python' '5003 5003' "$(v/bin/python -c '
from hdrh.histogram import HdrHistogram
histogram = HdrHistogram(1, 3600000, 3)
histogram.record_value(5000)
print(histogram.get_value_at_percentile(100), histogram.get_max_value())')"
sketch='[10, 1000].forEach(value => sketch.accept(value));
[sketch.getValueAtQuantile(0), sketch.min, sketch.getValueAtQuantile(1), sketch.max].map(x => +x.toFixed(2)).join(" ")'
seen 'sketches-js: least, greatest' '10.07 10 1002.43 1000' "$(node -p '
const sketch = new (require("@datadog/sketches-js").DDSketch)();'"$sketch")"
seen 'ddsketch: least, greatest' '10.07 1002.43' "$(v/bin/python -c '
from ddsketch import DDSketch
sketch = DDSketch()
sketch.add(10)
sketch.add(1000)
print(*(round(sketch.get_quantile_value(part), 2) for part in (0, 1)))')"
seen 'tdigest' 5000 "$(node -p '
const digest = new (require("tdigest").TDigest)();
digest.push(5000);
digest.percentile(1)')"
