#!/usr/bin/env bash
# User-agent: a
# Sitemap: https://a.example/map
# User-agent: b
# Disallow: /
#
# RFC 9309, section 2.2.4: a line that the RFC does not define must not interfere with the others; its example is that a
# line Sitemap must not end a group. So neither a nor b may fetch anything here.
# Guess: readers written or kept since the RFC came do so.
# Seen: robots-parser 3.0.1 (npm) lets a fetch everything. Protego 0.7.0 (Python) does not.
# Load from a robot that a file seems to forbid need not be the robot's ill will: put Sitemap at the end.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

printf '%s\n' 'User-agent: a' 'Sitemap: https://a.example/map' 'User-agent: b' 'Disallow: /' >between.txt
printf '%s\n' 'User-agent: a' 'User-agent: b' 'Disallow: /' 'Sitemap: https://a.example/map' >end.txt
npm_install robots-parser@3.0.1
parser() {
    node -e '
        const [file, agent] = process.argv.slice(1);
        const lines = require("fs").readFileSync(file, "utf8");
        const robots = require("robots-parser")("https://a.example/robots.txt", lines);
        console.log(robots.isAllowed("https://a.example/", agent));' "$1" "$2"
}
seen 'robots-parser: a, Sitemap at the end' false "$(parser end.txt a)"
seen 'robots-parser: a, Sitemap between' true "$(parser between.txt a)"
seen 'robots-parser: b, Sitemap between' false "$(parser between.txt b)"

pip_install protego==0.7.0
protego() {
    v/bin/python -c '
import sys
from protego import Protego
print(Protego.parse(open(sys.argv[1]).read()).can_fetch("https://a.example/", sys.argv[2]))' "$1" "$2"
}
seen 'Protego: a, Sitemap between' False "$(protego between.txt a)"
