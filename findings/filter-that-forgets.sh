#!/usr/bin/env bash
# a cuckoo filter for 1000 elements, with 1000 elements
#
# Fan et al., "Cuckoo Filter: Practically Better Than Bloom" (2014): a filter may find what it does not hold, and never fails to find
# what it holds. An element that moves goes to the other of its two buckets; if no place is found, the filter is full and says so.
# Guess: a library finds each element for which add gave true.
# Seen: bloom-filters 3.0.4 (npm) takes 1000 elements into 1048 places, gives true for each, and then does not find more than 100 of
# them. With 500 elements it seldom forgets one. pyprobables 0.7.0 (Python) finds all.
# A cache asks such a filter which peer has a page, and fetches what a peer holds once more.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install bloom-filters@3.0.4
pip_install pyprobables==0.7.0
cat >filter.js <<'JS'
const { CuckooFilter } = require("bloom-filters");
const filter = CuckooFilter.create(1000, 0.01);
const keys = [...Array(1000).keys()].map(number => `k${number}`);
const added = keys.filter(key => filter.add(key)).length;
const missing = keys.filter(key => !filter.has(key)).length;
console.log(filter.fullSize, added, missing > 100 ? "more than 100" : missing);
JS
seen 'bloom-filters: places, added, not found' '1048 1000 more than 100' "$(node filter.js)"
seen 'pyprobables: added, not found' '1000 0' "$(v/bin/python -c '
from probables import CuckooFilter
places = CuckooFilter(capacity=262, bucket_size=4)
keys = [f"k{number}" for number in range(1000)]
for key in keys:
    places.add(key)
print(len(keys), sum(not places.check(key) for key in keys))')"
