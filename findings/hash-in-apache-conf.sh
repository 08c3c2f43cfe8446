#!/usr/bin/env bash
# RewriteRule ^/a$ /b#c [NE,R], in the configuration of Apache
#
# Apache HTTP Server 2.4, "Configuration Files": lines that begin with a hash are comments, and a comment cannot stand on
# the line of a directive; a backslash at the end of a line, of a comment too, joins it with the next one.
# Guess: a parser of this configuration leaves a hash within a line alone, or at least one within quotes.
# Seen: apacheconfig 0.3.2 (Python) cuts the line there: the rule ends with /b, and the text "x # y" with its first quote
# and x. It reads the line behind a comment that ends with a backslash as a directive.
# A tool that changes one setting with this library writes the others without their ends.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install apacheconfig==0.3.2
read_conf() {
    printf '%b\n' "$1" >a.conf
    v/bin/python -c '
from apacheconfig import make_loader
with make_loader() as loader:
    print(loader.load("a.conf"))'
}
seen 'without a hash' "{'RewriteRule': '^/a /b [NE,R]'}" "$(read_conf 'RewriteRule ^/a /b [NE,R]')"
seen 'a hash in an address' "{'RewriteRule': '^/a /b'}" "$(read_conf 'RewriteRule ^/a /b#c [NE,R]')"
seen 'a hash within quotes' "{'ErrorDocument': '404 \"x'}" "$(read_conf 'ErrorDocument 404 "x # y"')"
seen 'a comment of two lines' "{'Listen': '80'}" "$(read_conf '# a \\\\\nListen 80')"
