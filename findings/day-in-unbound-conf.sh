#!/usr/bin/env bash
# cache-max-ttl: 1d
#
# unbound.conf(5) has sizes with k, m and g, and times in seconds; zone files, and the configurations of Knot and BIND, have times
# such as 1d.
# Guess: unbound takes 1d for a day, or refuses the line, as it refuses do-ip6: true.
# Seen: unbound-checkconf of Unbound 1.17.1 finds no error, and takes 1d for one second, and 1h30m as well. dnsmasq 2.90, which
# has seconds alone, too, refuses max-cache-ttl=1d.
# A cache that ought to hold answers for a day asks again each second.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

debian_install dnsmasq-base=2.90-4~deb12u2 unbound=1.17.1-2+deb12u4 libevent-2.1-7 libprotobuf-c1 libfstrm0 libhiredis0.14
# check NAME VALUE: what unbound says, and the value that it has
check() {
    printf 'server:\n chroot: ""\n username: ""\n directory: "."\n %s: %s\n' "$1" "$2" >unbound.conf
    if root/usr/sbin/unbound-checkconf unbound.conf >said 2>&1; then
        root/usr/sbin/unbound-checkconf -o "$1" unbound.conf
    else
        sed -n 's/.*conf:5: error: //p' said
    fi
}
seen 'unbound: cache-max-ttl: 3600' 3600 "$(check cache-max-ttl 3600)"
seen 'unbound: cache-max-ttl: 1d' 1 "$(check cache-max-ttl 1d)"
seen 'unbound: cache-max-ttl: 1h30m' 1 "$(check cache-max-ttl 1h30m)"
seen 'unbound: cache-max-ttl: d' 'number expected' "$(check cache-max-ttl d)"
seen 'unbound: msg-cache-size: 4m' 4194304 "$(check msg-cache-size 4m)"
seen 'unbound: do-ip6: true' 'expected yes or no.' "$(check do-ip6 true)"
dnsmasq() {
    root/usr/sbin/dnsmasq --test --conf-file=/dev/null "$1" 2>&1 | sed '/^$/d; s/.*: //'
}
seen 'dnsmasq: max-cache-ttl=3600' 'syntax check OK.' "$(dnsmasq --max-cache-ttl=3600)"
seen 'dnsmasq: max-cache-ttl=1d' 'try --help' "$(dnsmasq --max-cache-ttl=1d)"
