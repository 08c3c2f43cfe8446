#!/usr/bin/env bash
# Accept-Encoding: *, gzip;q=0
#
# RFC 9110, section 12.5.3: * stands for the codings that the field does not name, and a weight of 0 says that a
# coding is not acceptable. Section 8.4.1: the names of codings are case-insensitive.
# Guess: a chooser of codings gives br for this field, and gzip for GZIP.
# Seen: @fastify/accept-negotiator 2.1.2 (npm), on which Fastify's plugins for compression and for files depend, gives
# gzip for `*, gzip;q=0`, since it takes the star for the first of its own list. It knows no GZIP. It reads
# `gzip;q=0` alone as meant. negotiator 1.1.0 (npm) gives br and gzip.
# A client that cannot read gzip gets it from a server that could have sent br.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install @fastify/accept-negotiator@2.1.2 negotiator@1.1.0
cat >choose.js <<'JS'
const [library, field] = process.argv.slice(2);
const codings = ["gzip", "br"];
if (library === "negotiator") {
    const Negotiator = require("negotiator");
    console.log(new Negotiator({ headers: { "accept-encoding": field } }).encoding(codings));
} else {
    console.log(require("@fastify/accept-negotiator").negotiate(field, codings));
}
JS
seen '@fastify/accept-negotiator' gzip "$(node choose.js fastify '*, gzip;q=0')"
seen '@fastify/accept-negotiator: gzip;q=0' null "$(node choose.js fastify 'gzip;q=0')"
seen '@fastify/accept-negotiator: GZIP' null "$(node choose.js fastify GZIP)"
seen 'negotiator' br "$(node choose.js negotiator '*, gzip;q=0')"
seen 'negotiator: GZIP' gzip "$(node choose.js negotiator GZIP)"
