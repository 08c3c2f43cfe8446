#!/usr/bin/env bash
# WWW-Authenticate: Basic realm="a", charset="UTF-8"
#
# RFC 7617, section 2.1: a server may name the encoding of user names and passwords so. Section 2: a client ignores
# parameters that it does not know. RFC 9110, section 11.1: the name of a scheme is in any case.
# Guess: a library for Basic, Digest and Bearer knows the parameter, or ignores it.
# Seen: http-auth-utils 6.0.1 (npm) fails at the parameter, at any other that it does not know, and at `basic`.
# auth-header 1.0.0 (npm) reads the three. Credentials with `basic` fail in the same way.
# A program that uses it fails at servers that follow the newer RFC, and refuses clients that write schemes in small
# letters.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install http-auth-utils@6.0.1 auth-header@1.0.0
cat >read.mjs <<'JS'
import { parseAuthorizationHeader, parseWWWAuthenticateHeader } from "http-auth-utils";
const [what, field] = process.argv.slice(2);
try {
    const read = what === "challenge" ? parseWWWAuthenticateHeader : parseAuthorizationHeader;
    const { data } = read(field);
    console.log(data.realm ?? data.username);
} catch (error) {
    console.log(error.code ?? error.message);
}
JS
utils() {
    node read.mjs "$@" 2>/dev/null
}
seen 'http-auth-utils: Basic realm="a"' a "$(utils challenge 'Basic realm="a"')"
seen 'http-auth-utils: ..., charset="UTF-8"' E_UNAUTHORIZED_KEY "$(utils challenge 'Basic realm="a", charset="UTF-8"')"
seen 'http-auth-utils: ..., later="x"' E_UNAUTHORIZED_KEY "$(utils challenge 'Basic realm="a", later="x"')"
seen 'http-auth-utils: basic realm="a"' E_UNKNOWN_AUTH_MECHANISM "$(utils challenge 'basic realm="a"')"
seen 'http-auth-utils: Basic YTpi' a "$(utils credentials 'Basic YTpi')"
seen 'http-auth-utils: basic YTpi' E_UNKNOWN_AUTH_MECHANISM "$(utils credentials 'basic YTpi')"
for field in 'Basic realm="a", charset="UTF-8"' 'Basic realm="a", later="x"' 'basic realm="a"'; do
    seen "auth-header: $field" a "$(node -p 'require("auth-header").parse(process.argv[1]).params.realm' "$field")"
done
