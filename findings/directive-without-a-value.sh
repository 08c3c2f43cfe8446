#!/usr/bin/env bash
# Content-Security-Policy: upgrade-insecure-requests; img-src *
#
# Content Security Policy Level 3, section 2.3, and "Upgrade Insecure Requests", section 3: the value of a directive may be
# empty, and that of this one is.
# Guess: a library that reads a policy and writes it again writes all directives of it.
# Seen: csp-parse 0.0.2 (npm) has the directive in its data, with an empty text, and leaves it out of toString. The parser
# content-security-policy-parser 0.6.0 (npm) gives both.
# Pages ask for http: addresses again, once a proxy has added a source to their policy with this library.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install csp-parse@0.0.2 content-security-policy-parser@0.6.0
rewrite() {
    node -p 'String(new (require("csp-parse"))(process.argv[1]))' "$1"
}
seen 'csp-parse: with values' "default-src 'self'; img-src *;" "$(rewrite "default-src 'self'; img-src *")"
seen 'csp-parse: without one' 'img-src *;' "$(rewrite 'upgrade-insecure-requests; img-src *')"
seen 'content-security-policy-parser' 'upgrade-insecure-requests img-src' "$(node --input-type=module -e '
    const { default: parse } = await import("content-security-policy-parser");
    console.log([...parse(process.argv[1]).keys()].join(" "));' 'upgrade-insecure-requests; img-src *')"
