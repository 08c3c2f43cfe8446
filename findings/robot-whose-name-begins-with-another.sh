#!/usr/bin/env bash
# User-agent: foo
# Disallow: /
#
# RFC 9309, section 2.2.1: a crawler finds its group by comparing the product token of the line with its own, whatever their
# case is; nothing says that a beginning is enough.
# Guess: this group is for foo, and not for foobot.
# Seen: Protego 0.7.0, urllib.robotparser of Python 3.11, github.com/temoto/robotstxt 1.1.2 (Go) and robots-txt-guard 1.0.2
# (npm) forbid everything to foobot as well. robots-parser 3.0.1 (npm) allows it. None takes foobot's group for foo.
# A site that keeps one robot out keeps out those of the same maker that it did not mean.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# the rules for one robot, whose name is left open
GROUP='User-agent: %s\nDisallow: /\n'
pip_install protego==0.7.0
npm_install robots-parser@3.0.1 robots-txt-guard@1.0.2 robots-txt-parse@2.0.1
cat >go.mod <<'GO'
module finding
go 1.26
require github.com/temoto/robotstxt v1.1.2
GO
cat >main.go <<'GO'
package main

import (
	"fmt"
	"os"

	"github.com/temoto/robotstxt"
)

func main() {
	robots, err := robotstxt.FromString(os.Args[1])
	if err != nil {
		panic(err)
	}
	fmt.Println(robots.TestAgent("/a", os.Args[2]))
}
GO
go mod tidy 2>/dev/null
go build -o allowed .
# ask LIBRARY NAME ROBOT: whether the rules for the name allow the robot anything
ask() {
    local text
    # shellcheck disable=SC2059 # the group is a format
    text=$(printf "$GROUP" "$2")
    case $1 in
    temoto) ./allowed "$text" "$3" ;;
    protego) v/bin/python -c '
import protego, sys
print(str(protego.Protego.parse(sys.argv[1]).can_fetch("http://a.example/a", sys.argv[2])).lower())' "$text" "$3" ;;
    urllib) v/bin/python -c '
import sys, urllib.robotparser
parser = urllib.robotparser.RobotFileParser()
parser.parse(sys.argv[1].splitlines())
print(str(parser.can_fetch(sys.argv[2], "http://a.example/a")).lower())' "$text" "$3" ;;
    robots-parser) node -p 'const [text, robot] = process.argv.slice(1);
require("robots-parser")("http://a.example/robots.txt", text).isAllowed("http://a.example/a", robot)' "$text" "$3" ;;
    robots-txt-guard) node -e 'const [text, robot] = process.argv.slice(1);
require("robots-txt-parse")(require("node:stream").Readable.from([text]))
    .then(read => console.log(require("robots-txt-guard")(read).isAllowed(robot, "/a")))' "$text" "$3" ;;
    esac
}
for library in protego urllib temoto robots-txt-guard robots-parser; do
    seen "$library: foo" false "$(ask $library foo foo)"
    seen "$library: foo, group of foobot" true "$(ask $library foobot foo)"
done
seen 'robots-parser: foobot, group of foo' true "$(ask robots-parser foo foobot)"
for library in protego urllib temoto robots-txt-guard; do
    seen "$library: foobot, group of foo" false "$(ask $library foo foobot)"
done
