#!/usr/bin/env bash
# server a 192.0.2.1 check, and bind unix@/run/a, in the configuration of HAProxy
#
# HAProxy's configuration manual, sections 4.2 and 5: the port of a server may be left out, and `bind` takes addresses with
# a prefix such as unix@, and several of them with commas between.
# Guess: a library that reads and writes this configuration writes both as they were.
# Seen: pyhaproxy 0.3.7 (Python) writes `192.0.2.1:`, with a colon and no port, and `unix: @/run/a`. It writes addresses with
# ports, of IPv6 too, as they were.
# A tool on this library that changes one server writes all the others of this kind in a form that the manual lacks.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install pyhaproxy==0.3.7
rewrite() {
    printf 'global\n    maxconn 9\ndefaults\n    mode http\n%s\n    %s\n' "$1" "$2" >a.cfg
    v/bin/python -c '
from pyhaproxy.parse import Parser
from pyhaproxy.render import Render
print(Render(Parser("a.cfg").build_configuration()).render_configuration())' | grep -E "${2%% *}" | xargs
}
seen 'server, with a port' 'server a 192.0.2.1:80 check' "$(rewrite 'backend b' 'server a 192.0.2.1:80 check')"
seen 'server, IPv6' 'server a [2001:db8::1]:80 check' "$(rewrite 'backend b' 'server a [2001:db8::1]:80 check')"
seen 'server, without a port' 'server a 192.0.2.1: check' "$(rewrite 'backend b' 'server a 192.0.2.1 check')"
seen 'bind, with a port' 'bind *:80' "$(rewrite 'frontend f' 'bind *:80')"
seen 'bind, UNIX socket' 'bind unix: @/run/a' "$(rewrite 'frontend f' 'bind unix@/run/a')"
