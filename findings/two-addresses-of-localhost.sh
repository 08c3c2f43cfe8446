#!/usr/bin/env bash
# 127.0.0.1 localhost, and ::1 localhost, in /etc/hosts
#
# hosts(5): a line has an address and its names; a name may stand in several lines, as localhost does on each system with IPv6. RFC 4007,
# section 11: an address of one link has its zone behind a percent sign, fe80::1%eth0.
# Guess: libraries that read this file, change it, and write it again keep the lines that they did not change.
# Seen: hosts-util 1.0.0 (npm) has one address for each name, the last one, and so writes ::1 alone for localhost. python-hosts 1.1.3
# (Python) drops the line of fe80::1%eth0 without an error as it reads, so that it is missing from the file that it writes.
# A program that adds one name for a test takes 127.0.0.1 away from localhost.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install hosts-util@1.0.0
pip_install python-hosts==1.1.3
again_node() {
    node -p '
        const { parse, stringify } = require("hosts-util");
        const hosts = parse(process.argv[1].replaceAll("|", "\n"));
        hosts.added = "192.0.2.9";
        stringify(hosts).trim().split("\n").map((line) => line.replace(/\s+/g, " ")).join("|");' "$1"
}
again_python() {
    tr '|' '\n' <<<"$1" >file
    v/bin/python -c '
from python_hosts import Hosts, HostsEntry
hosts = Hosts(path="file")
hosts.add([HostsEntry(entry_type="ipv4", address="192.0.2.9", names=["added"])])
hosts.write()'
    tr -s '\t ' ' ' <file | grep . | paste -sd '|'
}
seen 'hosts-util: one address for each' '127.0.0.1 localhost|192.0.2.1 a|192.0.2.1 b|192.0.2.9 added' \
    "$(again_node '127.0.0.1 localhost|192.0.2.1 a b')"
seen 'hosts-util: localhost twice' '::1 localhost|192.0.2.9 added' "$(again_node '127.0.0.1 localhost|::1 localhost')"
seen 'python-hosts: localhost twice' '127.0.0.1 localhost|::1 localhost|192.0.2.9 added' \
    "$(again_python '127.0.0.1 localhost|::1 localhost')"
seen 'python-hosts: fe80::1%eth0' '127.0.0.1 localhost|192.0.2.9 added' "$(again_python '127.0.0.1 localhost|fe80::1%eth0 a')"
