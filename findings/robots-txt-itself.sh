#!/usr/bin/env bash
# Disallow: /, and the address of /robots.txt
#
# RFC 9309, section 2.2.2: the address /robots.txt is implicitly allowed.
# Guess: a parser of these rules says so, as a crawler that asks it before each request has to read the file again.
# Seen: robots-parser 3.0.1 (npm), robotexclusionrulesparser 1.7.1 (Python) and the urllib.robotparser of Python forbid it.
# Protego 0.7.0 (Python), the parser of Scrapy, allows it.
# A crawler of this kind never learns that a site has opened again; a cache sees no request for the file.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install robotexclusionrulesparser==1.7.1 protego==0.7.0
npm_install robots-parser@3.0.1
# row PATH OF_PROTEGO OF_OTHERS
row() {
    local library
    for library in protego urllib robotexclusionrulesparser; do
        seen "$library: $1" "$([[ $library == protego ]] && echo "$2" || echo "$3")" "$(v/bin/python -c '
import sys
library, path = sys.argv[1:]
rules, agent, address = "User-agent: *\nDisallow: /", "a", "https://a.example" + path
if library == "protego":
    from protego import Protego
    print(Protego.parse(rules).can_fetch(address, agent))
elif library == "urllib":
    from urllib.robotparser import RobotFileParser
    parser = RobotFileParser()
    parser.parse(rules.splitlines())
    print(parser.can_fetch(agent, address))
else:
    from robotexclusionrulesparser import RobotExclusionRulesParser
    parser = RobotExclusionRulesParser()
    parser.parse(rules)
    print(parser.is_allowed(agent, address))' $library "$1")"
    done
    seen "robots-parser: $1" "${3,}" "$(node -p '
        const parser = require("robots-parser")("https://a.example/robots.txt", "User-agent: *\nDisallow: /");
        parser.isAllowed("https://a.example" + process.argv[1], "a")' "$1")"
}
row /a False False
row /robots.txt True False
