#!/usr/bin/env bash
# 2001:db8:0:1:1:1:1:1
#
# RFC 5952, section 4.2.2: `::` must not stand for one group of zeros; 4.3: letters are small; section 5: an address of
# the form ::ffff:0:0/96 should be written with its IPv4 part. RFC 4291, section 2.2: any IPv6 address may end so.
# Guess: libraries for addresses write the text of this RFC, and read each text of the older one.
# Seen: ip6addr 0.2.5 (npm) writes 2001:db8::1:1:1:1:1, and refuses 64:ff9b::192.0.2.33, an example of RFC 6052. ip-num
# 1.6.2 (npm) leaves capitals as they are. ipaddr.js 2.5.0 (npm), ip-address 10.7.6 (npm) and ip-num write
# ::ffff:c000:201, ipaddr.js by a function that is named for the RFC. netaddr 1.3.0 (Python) does all as the RFC says
# but for 64:ff9b::, where it has a choice.
# Programs that compare addresses as texts, as of logs of two sources, miss pairs: compare bytes.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install ip6addr@0.2.5 ip-num@1.6.2 ipaddr.js@2.5.0 ip-address@10.7.6
cat >write.js <<'JS'
const [library, text] = process.argv.slice(2);
const write = {
    "ip6addr": () => require("ip6addr").parse(text).toString(),
    "ip-num": () => require("ip-num").collapseIPv6Number(text),
    "ipaddr.js": () => require("ipaddr.js").parse(text).toRFC5952String(),
    "ip-address": () => new (require("ip-address").Address6)(text).correctForm(),
};
try {
    console.log(write[library]());
} catch (error) {
    console.log("refused");
}
JS
pip_install netaddr==1.3.0
write() {
    if [[ $1 == netaddr ]]; then
        v/bin/python -c 'import netaddr, sys; print(netaddr.IPAddress(sys.argv[1]))' "$2"
    else
        node write.js "$@"
    fi
}
# rows LIBRARY OF_ONE_GROUP OF_CAPITALS OF_IPV4 OF_NAT64
rows() {
    seen "$1: 2001:db8:0:1:1:1:1:1" "$2" "$(write "$1" 2001:db8:0:1:1:1:1:1)"
    seen "$1: 2001:DB8::A" "$3" "$(write "$1" 2001:DB8::A)"
    seen "$1: ::ffff:192.0.2.1" "$4" "$(write "$1" ::ffff:192.0.2.1)"
    seen "$1: 64:ff9b::192.0.2.33" "$5" "$(write "$1" 64:ff9b::192.0.2.33)"
}
rows ip6addr 2001:db8::1:1:1:1:1 2001:db8::a ::ffff:192.0.2.1 refused
rows ip-num 2001:db8:0:1:1:1:1:1 2001:DB8::A ::ffff:c000:201 64:ff9b::c000:221
rows ipaddr.js 2001:db8:0:1:1:1:1:1 2001:db8::a ::ffff:c000:201 64:ff9b::c000:221
rows ip-address 2001:db8:0:1:1:1:1:1 2001:db8::a ::ffff:c000:201 64:ff9b::c000:221
rows netaddr 2001:db8:0:1:1:1:1:1 2001:db8::a ::ffff:192.0.2.1 64:ff9b::c000:221
