#!/usr/bin/env bash
# ip.cidr("2001:db8::1/32")
#
# RFC 4291, section 2.3: the prefix is the leftmost bits of the address, as many as the number says: 2001:db8::/32.
# Guess: a library with functions for both versions, whose `mask` knows both, gives 2001:db8::.
# Seen: ip 2.0.1 (npm) gives 0:1:: for 32 bits, whose mask it takes for one of IPv4, and 0.0.0.0 as the network of its
# cidrSubnet. With the mask of fromPrefixLen(32, "ipv6") it gives the right one. ip-address 10.7.6 and ipaddr.js 2.5.0
# (npm) are as guessed.
# Logs that group clients by their networks put those of IPv6 into networks of nobody.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install ip@2.0.1 ip-address@10.7.6 ipaddr.js@2.5.0
SIX=2001:db8::1
seen 'ip: cidr, 192.0.2.1/24' 192.0.2.0 "$(node -p 'require("ip").cidr("192.0.2.1/24")')"
seen 'ip: cidr, 32 bits' 0:1:: "$(node -p 'require("ip").cidr(process.argv[1] + "/32")' $SIX)"
seen 'ip: cidrSubnet, 32 bits' 0.0.0.0 \
    "$(node -p 'require("ip").cidrSubnet(process.argv[1] + "/32").networkAddress' $SIX)"
seen 'ip: mask, 32 bits' 2001:db8:: \
    "$(node -p 'const ip = require("ip"); ip.mask(process.argv[1], ip.fromPrefixLen(32, "ipv6"))' $SIX)"
seen 'ip-address, 32 bits' 2001:db8:: "$(node -p '
    const { Address6 } = require("ip-address");
    new Address6(process.argv[1] + "/32").startAddress().correctForm()' $SIX)"
seen 'ipaddr.js, 32 bits' 2001:db8:: \
    "$(node -p 'String(require("ipaddr.js").IPv6.networkAddressFromCIDR(process.argv[1] + "/32"))' $SIX)"
