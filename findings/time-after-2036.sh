#!/usr/bin/env bash
# 00000001 80000000, in a packet of NTP
#
# RFC 4330, section 3, and RFC 5905, section 6: the seconds wrap on 7 February 2036; where the first bit is 0, the time is
# counted from then on, not from 1900. This is 06:28:17.5 on that day.
# Guess: libraries that turn it into a date or a Unix time know that.
# Seen: ntplib 0.4.0 (Python) gives -2208988798.5, and ntp-packet-parser 0.5.0 (npm) a date in January 1900. ntplib turns
# the Unix time of that day into a number that has more than the 32 bits of the field.
# Times of packets in captures are 136 years off from then on. Before it, both are as guessed.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install ntplib==0.4.0
npm_install ntp-packet-parser@0.5.0
# packet TIME: a packet of 48 bytes, with this time in all places
packet() {
    echo "2402000300000000000000004750530$(printf '0%s' "$1$1$1$1")"
}
python() {
    v/bin/python -c '
import ntplib, sys
statistics = ntplib.NTPStats()
statistics.from_data(bytes.fromhex(sys.argv[1]))
print(statistics.tx_time)' "$(packet "$1")"
}
js() {
    node -p '
        const { NtpPacketParser } = require("ntp-packet-parser");
        NtpPacketParser.parse(Buffer.from(process.argv[1], "hex")).transmitTimestamp.toISOString()' "$(packet "$1")"
}
seen 'ntplib: the second before' 2085978495.0 "$(python ffffffff00000000)"
seen 'ntp-packet-parser: the second before' 2036-02-07T06:28:15.000Z "$(js ffffffff00000000)"
seen 'ntplib: after it' -2208988798.5 "$(python 0000000180000000)"
seen 'ntp-packet-parser: after it' 1900-01-01T00:00:01.500Z "$(js 0000000180000000)"
seen 'ntplib: seconds to send' 4294967297 \
    "$(v/bin/python -c 'import ntplib; print(ntplib.system_to_ntp_time(2085978497))')"
