#!/usr/bin/env bash
# Accept: text/html;charset=utf-8, for a server that offers text/html;charset=utf-8
#
# RFC 9110, section 12.5.1: a media range may have parameters, and the more specific range takes precedence; its
# examples have text/html;level=1.
# Guess: a library finds the type that the client asks for, letter by letter, among those that the server offers.
# Seen: @hapi/accept 6.0.3 (npm) finds none: it matches no offered type with a parameter. For an offer of text/html,
# which has no parameter, it answers text/html;charset=utf-8, the words of the client. negotiator 1.1.0 (npm) finds
# the first, and nothing for the second.
# A server that offers two versions of a format by a parameter, as with application/ld+json and its profile, finds
# nothing to send.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install @hapi/accept@6.0.3 negotiator@1.1.0
cat >choose.js <<'JS'
const [library, field, offered] = process.argv.slice(2);
const Negotiator = require("negotiator");
const found = library === "hapi"
    ? require("@hapi/accept").mediaType(field, [offered])
    : new Negotiator({ headers: { accept: field } }).mediaType([offered]);
console.log(found || "none");
JS
TYPE='text/html;charset=utf-8'
seen '@hapi/accept: the same' none "$(node choose.js hapi "$TYPE" "$TYPE")"
seen '@hapi/accept: level=1' none "$(node choose.js hapi 'text/html;level=1' 'text/html;level=1')"
seen '@hapi/accept: offer without it' "$TYPE" "$(node choose.js hapi "$TYPE" text/html)"
seen '@hapi/accept: both without it' text/html "$(node choose.js hapi text/html text/html)"
seen 'negotiator: the same' "$TYPE" "$(node choose.js negotiator "$TYPE" "$TYPE")"
seen 'negotiator: offer without it' none "$(node choose.js negotiator "$TYPE" text/html)"
