#!/usr/bin/env bash
# a request that costs 5, of a limit of 2, and then one that costs 1
#
# A token bucket, as RFC 2697 and its like describe, takes tokens for what it lets pass, and none for the rest.
# Guess: the first request is refused, and the second passes.
# Seen: rate-limiter-flexible 11.4.0 (npm) and the fixed window of limits 5.8.0 (Python) refuse the second, too, as they count
# what they refused. The moving window and the sliding counter of limits, which its users choose among by a word, let it pass.
# A client that asks for too much once gets nothing until the window ends.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install rate-limiter-flexible@11.4.0
pip_install limits==5.8.0
seen 'rate-limiter-flexible' 'refused refused' "$(node -e '
const { RateLimiterMemory } = require("rate-limiter-flexible");
const limiter = new RateLimiterMemory({ points: 2, duration: 60 });
const ask = cost => limiter.consume("a", cost).then(() => "passed", () => "refused");
(async () => console.log(await ask(5), await ask(1)))();')"
python() {
    v/bin/python -c '
import sys
import limits, limits.storage, limits.strategies
limiter = getattr(limits.strategies, sys.argv[1])(limits.storage.MemoryStorage())
limit = limits.parse("2/minute")
print(*("passed" if limiter.hit(limit, "a", cost=cost) else "refused" for cost in (5, 1)))' "$1"
}
seen 'limits: fixed window' 'refused refused' "$(python FixedWindowRateLimiter)"
seen 'limits: moving window' 'refused passed' "$(python MovingWindowRateLimiter)"
seen 'limits: sliding counter' 'refused passed' "$(python SlidingWindowCounterRateLimiter)"
