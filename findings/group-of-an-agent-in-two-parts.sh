#!/usr/bin/env bash
# Two groups of robots.txt for one agent
#
# RFC 9309, section 2.2.1: their rules are combined into one group. Section 2.2.2: the longest rule that matches counts, and
# Allow, if two are equal. Section 2.2: blanks may stand before the colon.
# Guess: a parser that was written to go beyond the one in Python's library combines them.
# Seen: robotexclusionrulesparser 1.7.1 (Python) takes the first group alone, takes the first rule that matches, and passes
# over `Disallow :`. Protego 0.7.0 (Python) and robots-parser 3.0.1 (npm) follow the RFC.
# Sites whose robots.txt is put together by several tools are crawled by half of their rules.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install robotexclusionrulesparser==1.7.1 protego==0.7.0
npm_install robots-parser@3.0.1
# row WHAT RULES PATH EXPECTED OF_ROBOTEXCLUSIONRULESPARSER
row() {
    seen "protego: $1" "$4" "$(v/bin/python -c '
import sys
from protego import Protego
print(Protego.parse(sys.argv[1]).can_fetch("https://a.example" + sys.argv[2], "a"))' "$2" "$3")"
    seen "robots-parser: $1" "${4,}" "$(node -p '
        const [rules, path] = process.argv.slice(1);
        require("robots-parser")("https://a.example/robots.txt", rules).isAllowed("https://a.example" + path, "a")' \
        "$2" "$3")"
    seen "robotexclusionrulesparser: $1" "$5" "$(v/bin/python -c '
import sys
from robotexclusionrulesparser import RobotExclusionRulesParser
parser = RobotExclusionRulesParser()
parser.parse(sys.argv[1])
print(parser.is_allowed("a", "https://a.example" + sys.argv[2]))' "$2" "$3")"
}
row 'one group' $'User-agent: a\nDisallow: /x' /x False False
row 'two groups' $'User-agent: a\nDisallow: /y\n\nUser-agent: b\nDisallow: /\n\nUser-agent: a\nDisallow: /x' /x False True
row 'two rules' $'User-agent: a\nDisallow: /x\nAllow: /x/y' /x/y True False
row 'a blank' $'User-agent : a\nDisallow : /x' /x False True
