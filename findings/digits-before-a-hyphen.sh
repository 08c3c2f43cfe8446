#!/usr/bin/env bash
# 1.2.0-4-g1a2b3c4 and 1.2.0-4-g2b3c4d5, as `git describe` names builds
#
# Semantic Versioning 2.0.0, section 9: the identifiers of a pre-release may have hyphens in them; section 11: those that are
# no numbers are compared by ASCII. So the first one is older, and both are older than 1.2.0.
# Guess: a library that compares versions of this kind tells the two apart, and reads ranges of npm as npm does.
# Seen: compare-versions 6.1.1 (npm) finds the two equal: it takes 4-g1a2b3c4 for the number 4. It finds 1.2.3 above the range
# >1.2, and not in <=1.2, where npm's own library, semver 7.8.6, takes 1.2 for all of 1.2.x. semver finds the first older.
# A build is not replaced by the next one.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install compare-versions@6.1.1 semver@7.8.6
compare() {
    node -p 'const [library, ...versions] = process.argv.slice(1);
require(library)[library === "semver" ? "compare" : "compareVersions"](...versions)' "$@"
}
satisfies() {
    node -p 'const [library, version, range] = process.argv.slice(1); require(library).satisfies(version, range)' "$@"
}
seen 'semver: g1a2b3c4 and g2b3c4d5' -1 "$(compare semver 1.2.0-4-g1a2b3c4 1.2.0-4-g2b3c4d5)"
seen 'compare-versions: 4 and 5' -1 "$(compare compare-versions 1.2.0-4 1.2.0-5)"
seen 'compare-versions: g1a2b3c4 and g2b3c4d5' 0 "$(compare compare-versions 1.2.0-4-g1a2b3c4 1.2.0-4-g2b3c4d5)"
seen 'semver: 1.2.3, >1.2' false "$(satisfies semver 1.2.3 '>1.2')"
seen 'semver: 1.2.3, <=1.2' true "$(satisfies semver 1.2.3 '<=1.2')"
seen 'compare-versions: 1.2.3, ^1.2' true "$(satisfies compare-versions 1.2.3 '^1.2')"
seen 'compare-versions: 1.2.3, >1.2' true "$(satisfies compare-versions 1.2.3 '>1.2')"
seen 'compare-versions: 1.2.3, <=1.2' false "$(satisfies compare-versions 1.2.3 '<=1.2')"
