#!/usr/bin/env bash
# Alias /a "/srv/c d", in the configuration of Apache
#
# Apache HTTP Server 2.4, "Configuration Files": arguments of a directive are separated by blanks, and one that has blanks
# stands in quotes.
# Guess: a library that reads this configuration and writes it again writes the arguments that it read.
# Seen: apacheconfig 0.3.2 (Python) puts both arguments into one more pair of quotes, `"/a "/srv/c d""`, and takes the
# backslashes of escaped quotes away. Of "/a b" "/srv/c d" it takes the first quote and the last one away, and gives them
# back; one argument in quotes is read and written as meant.
# A configuration that a tool has changed at one place has other arguments at many, or is refused.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install apacheconfig==0.3.2
rewrite() {
    printf '%s\n' "$1" >a.conf
    v/bin/python -c '
from apacheconfig import make_loader
with make_loader() as loader:
    conf = loader.load("a.conf")
    print(*conf.values(), loader.dumps(conf).strip(), sep=" -> ")'
}
seen 'one argument' '/srv/c d -> DocumentRoot "/srv/c d"' "$(rewrite 'DocumentRoot "/srv/c d"')"
seen 'two, both in quotes' '/a b" "/srv/c d -> Alias "/a b" "/srv/c d"' "$(rewrite 'Alias "/a b" "/srv/c d"')"
seen 'two, one of them in quotes' '/a "/srv/c d" -> Alias "/a "/srv/c d""' "$(rewrite 'Alias /a "/srv/c d"')"
seen 'a format of logs' '"%h "%r"" combined -> LogFormat ""%h "%r"" combined"' \
    "$(rewrite 'LogFormat "%h \"%r\"" combined')"
