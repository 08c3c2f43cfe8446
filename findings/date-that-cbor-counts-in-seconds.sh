#!/usr/bin/env bash
# c1 1a 514b67b0: a date of CBOR
#
# RFC 8949, section 3.4.2: tag 1 is a time in seconds since 1970, here 1363896240, the example of appendix A.
# Guess: a decoder that makes a date of this tag takes the number for seconds.
# Seen: cbor-sync 1.0.4 (npm) takes it for milliseconds: the example is in January 1970. It reads the same time as a
# text, tag 0, as meant. Its encoder writes tag 0 alone, so that its own tests do not notice. cbor 10.0.12, cbor-x 1.6.9
# and borc 3.0.0 (npm) give March 2013.
# Tokens and caches whose dates this library reads have expired long ago.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install cbor-sync@1.0.4 cbor@10.0.12 cbor-x@1.6.9 borc@3.0.0
read_with() {
    node -p '
        const { decode, decodeFirstSync } = require(process.argv[1]);
        (decodeFirstSync ?? decode)(Buffer.from(process.argv[2], "hex")).toISOString()' "$@"
}
TEXT=c074323031332d30332d32315432303a30343a30305a
SECONDS_OF_IT=c11a514b67b0
for library in cbor cbor-x borc cbor-sync; do
    seen "$library: tag 0" 2013-03-21T20:04:00.000Z "$(read_with $library $TEXT)"
done
for library in cbor cbor-x borc; do
    seen "$library: tag 1" 2013-03-21T20:04:00.000Z "$(read_with $library $SECONDS_OF_IT)"
done
seen 'cbor-sync: tag 1' 1970-01-16T18:51:36.240Z "$(read_with cbor-sync $SECONDS_OF_IT)"
seen 'cbor-sync writes tag' c0 "$(node -p 'require("cbor-sync").encode(new Date(0)).toString("hex").slice(0, 2)')"
