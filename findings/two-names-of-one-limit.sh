#!/usr/bin/env bash
# limits for the user a at the path b/c, and for the user a/b at the path c
#
# The guide of limits (Python): a limit is counted for any number of identifiers, such as a user and a path.
# Guess: other identifiers have other counts.
# Seen: limits 5.8.0 (Python) joins them with slashes, so that these two, and three identifiers a, b and c, have one count. It
# tells a and b/c from a and b/d.
# Paths have slashes, and users of other services, as a/b, too: one spends what the other was given.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install limits==5.8.0
# remaining IDENTIFIER...: what is left of 5, after a request of user a at b/c
remaining() {
    v/bin/python -c '
import sys
import limits, limits.storage, limits.strategies
limiter = limits.strategies.FixedWindowRateLimiter(limits.storage.MemoryStorage())
limit = limits.parse("5/minute")
limiter.hit(limit, "a", "b/c")
print(limiter.get_window_stats(limit, *sys.argv[1:]).remaining)' "$@"
}
seen 'a, b/c' 4 "$(remaining a b/c)"
seen 'a, b/d' 5 "$(remaining a b/d)"
seen 'a/b, c' 4 "$(remaining a/b c)"
seen 'a, b, c' 4 "$(remaining a b c)"
