#!/usr/bin/env bash
# Accept-Encoding: gzip;Q=0.1, br;q=0.5
#
# RFC 9110, section 12.4.2: a weight is `q=` and a number; RFC 5234, section 2.3: texts in ABNF are in any case.
# Guess: parsers of these fields read Q as they do q.
# Seen: httpcneg 0.1.0 (Python) drops it, and gives gzip the weight 1, so that it is chosen before br. werkzeug 3.1.9, WebOb
# 1.8.11 (Python), negotiator 1.1.0 and @hapi/accept 6.0.3 (npm) choose br.
# A client that writes its weights in capitals gets what it wants least.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install httpcneg==0.1.0 werkzeug==3.1.9 webob==1.8.11
npm_install negotiator@1.1.0 @hapi/accept@6.0.3
best() {
    v/bin/python -c '
import sys
library, field = sys.argv[1:]
if library == "httpcneg":
    from httpcneg import parse_accept_encoding
    print(parse_accept_encoding(field)[0].type)
elif library == "werkzeug":
    from werkzeug.http import parse_accept_header
    print(parse_accept_header(field).best)
else:
    from webob.acceptparse import create_accept_encoding_header
    print(create_accept_encoding_header(field).acceptable_offers(["gzip", "br"])[0][0])' "$@"
}
js() {
    node -p '
        const [library, field] = process.argv.slice(1);
        const found = require(library);
        const headers = { "accept-encoding": field };
        (library === "negotiator" ? new found({ headers }).encodings() : found.encodings(field))[0]' "$@"
}
for field in 'gzip;q=0.1, br;q=0.5' 'gzip;Q=0.1, br;q=0.5'; do
    for library in werkzeug webob; do
        seen "$library: $field" br "$(best $library "$field")"
    done
    for library in negotiator @hapi/accept; do
        seen "$library: $field" br "$(js $library "$field")"
    done
done
seen 'httpcneg: gzip;q=0.1, br;q=0.5' br "$(best httpcneg 'gzip;q=0.1, br;q=0.5')"
seen 'httpcneg: gzip;Q=0.1, br;q=0.5' gzip "$(best httpcneg 'gzip;Q=0.1, br;q=0.5')"
