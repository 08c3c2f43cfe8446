#!/usr/bin/env bash
# a filter with a rate of false positives of 1 percent, and 10000 elements
#
# Almeida et al., "Scalable Bloom Filters" (2007): each filter that is added has a smaller rate than the one before, the first one
# small enough that all together stay within the rate asked for: with a ratio of 0.9, a tenth of it.
# Guess: libraries keep the rate, and one that tells its rate tells about the one that is measured.
# Seen: ScalableBloomFilter of pybloom_live 4.0.0 (Python) begins with 0.9 percent for 1 percent asked, so that 10000 elements in a
# filter that began with 100 have 3.1 percent. BloomFilter of bloom-filters 3.0.4 (npm) keeps 1 percent, and its rate() says 0.18.
# pyprobables 0.7.0 (Python) says 1.0 and keeps it.
# shellcheck disable=SC2016 # templates of JavaScript
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install pybloom_live==4.0.0 pyprobables==0.7.0
npm_install bloom-filters@3.0.4
cat >measure.py <<'PY'
import probables, pybloom_live

def percent(holds):
    return round(sum(holds(f"x{number}") for number in range(20000)) / 200, 1)

def fill(add, elements):
    for number in range(elements):
        add(f"k{number}")

PY
python() {
    v/bin/python -c "from measure import *
$1"
}
seen 'pybloom_live: percent of 10000' 3.1 "$(python '
scalable = pybloom_live.ScalableBloomFilter(initial_capacity=100, error_rate=0.01)
fill(scalable.add, 10000)
print(percent(scalable.__contains__))')"
seen 'pybloom_live: rate of the first filter' 0.009 "$(python '
scalable = pybloom_live.ScalableBloomFilter(initial_capacity=100, error_rate=0.01)
fill(scalable.add, 1)
print(round(scalable.filters[0].error_rate, 4))')"
seen 'pyprobables: percent measured, told' '1.1 1.0' "$(python '
plain = probables.BloomFilter(1000, 0.01)
fill(plain.add, 1000)
print(percent(plain.check), round(100 * plain.current_false_positive_rate(), 1))')"
seen 'bloom-filters: percent measured, told' '0.96 0.18' "$(node -p '
const filter = require("bloom-filters").BloomFilter.create(1000, 0.01);
for (let number = 0; number < 1000; number++) filter.add(`k${number}`);
let found = 0;
for (let number = 0; number < 50000; number++) found += filter.has(`x${number}`);
`${(found / 500).toFixed(2)} ${(100 * filter.rate()).toFixed(2)}`')"
