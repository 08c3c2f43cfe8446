#!/usr/bin/env bash
# timeRange(22, 6) at 23:30, and shExpMatch(url, "*(a)*"), in a proxy auto-configuration file
#
# MDN, "Proxy Auto-Configuration (PAC) file": in the patterns of shExpMatch * and ? have a meaning, and not those of regular expressions;
# timeRange and dateRange take a beginning and an end, which may lie behind midnight and in the next year, as code of browsers has it, and
# localHostOrDomainIs compares the host alone, without a domain, or the whole name.
# Guess: the library that proxies for Node use does the same.
# Seen: pac-resolver 9.0.2 (npm) finds 23:30 not between 22 and 6, no day within any dateRange, even (1, 31), and www.a the local name of
# www.a.example. In shExpMatch it takes a|b for "a or b", a+b not for itself, nor a(b), and fails at a[b. weekdayRange goes on behind
# Saturday.
# A file that keeps its users off a proxy at night sends them there, or the other way round, in Node alone.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install pac-resolver@9.0.2
export TZ=UTC
# on 1 January 2026 at 23:30
cat >evaluate.cjs <<'JS'
const { sandbox } = require("pac-resolver");
const Clock = Date;
Date = class extends Clock {
    constructor(...time) {
        super(...(time.length ? time : ["2026-01-01T23:30:00Z"]));
    }
};
for (const expression of process.argv.slice(2)) {
    try {
        console.log(new Function("browser", `with (browser) return ${expression}`)(sandbox));
    } catch (error) {
        console.log(error.message);
    }
}
JS
# each COMMAND CASE EXPECTED...: COMMAND runs once, with all cases, and prints a line for each
each() {
    local command cases=() expected=() found i
    read -ra command <<<"$1"
    shift
    while (($#)); do
        cases+=("$1")
        expected+=("$2")
        shift 2
    done
    mapfile -t found < <("${command[@]}" "${cases[@]}")
    for i in "${!cases[@]}"; do seen "${command[*]:1} ${cases[i]}" "${expected[i]}" "${found[i]-}"; done
}
each 'node evaluate.cjs' \
    'timeRange(22, 24)' true \
    'timeRange(22, 6)' false \
    'timeRange(22, 0, 6, 0)' false \
    'weekdayRange("WED", "SUN")' true \
    'dateRange(1, 31)' false \
    'dateRange("JAN", "DEC")' false \
    'dateRange(2026)' false \
    'shExpMatch("ab", "a?")' true \
    'shExpMatch("a(b)", "a(b)")' false \
    'shExpMatch("a+b", "a+b")' false \
    'shExpMatch("a", "a|b")' true \
    'shExpMatch("a[b", "a[b")' 'Invalid regular expression: /^a[b$/: Unterminated character class' \
    'localHostOrDomainIs("www", "www.a.example")' true \
    'localHostOrDomainIs("www.a", "www.a.example")' true
