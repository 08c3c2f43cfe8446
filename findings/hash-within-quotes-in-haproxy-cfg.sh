#!/usr/bin/env bash
# http-request set-header X "a # b", in the configuration of HAProxy
#
# HAProxy's configuration manual, section 2.2: a hash begins a comment unless it is quoted or behind a backslash.
# Guess: a parser of this configuration keeps it.
# Seen: pyhaproxy 0.3.7 (Python) ends the line there, with the first quote alone, and writes that. A hash behind a backslash
# ends it, too.
# The line that it writes has a quote too few, and half of its value.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install pyhaproxy==0.3.7
rewrite() {
    printf 'global\n    maxconn 9\ndefaults\n    mode http\nfrontend f\n    bind *:80\n    %s\n' "$1" >a.cfg
    v/bin/python -c '
from pyhaproxy.parse import Parser
from pyhaproxy.render import Render
print(Render(Parser("a.cfg").build_configuration()).render_configuration())' | grep -o 'http-request.*[^ ]'
}
seen 'without a hash' 'http-request set-header X "a b"' "$(rewrite 'http-request set-header X "a b"')"
seen 'a hash within quotes' 'http-request set-header X "a' "$(rewrite 'http-request set-header X "a # b"')"
seen 'a hash behind a backslash' "http-request set-header X a\\" "$(rewrite 'http-request set-header X a\#b')"
