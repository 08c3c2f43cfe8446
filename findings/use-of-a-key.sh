#!/usr/bin/env bash
# {"kty": "oct", "k": "...", "use": "x-a"}, in a set of keys
#
# RFC 7517, section 4.2: "sig" and "enc" are defined for `use`, and other values may be used; section 4.3 says the same of
# `key_ops`. Section 5: sets should be read without the keys that an implementation does not understand.
# Guess: a library for JOSE reads such a key, or leaves it out of the set.
# Seen: joserfc 1.8.0 (Python) refuses the whole set for one such key. It leaves out keys of an unknown `kty`, as the RFC
# says. jwcrypto 1.6.1 (Python) and jose 6.2.18 (npm) read the keys.
# A server that adds a key with a use of its own takes all its keys away from these clients.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install joserfc==1.8.0 jwcrypto==1.6.1
npm_install jose@6.2.18
FIRST='{"kty":"oct","k":"MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY"}'
keys_of() {
    v/bin/python -c '
import json, sys
library, keys = sys.argv[1:]
try:
    if library == "joserfc":
        from joserfc.jwk import KeySet
        print(len(KeySet.import_key_set(json.loads(keys)).keys))
    else:
        from jwcrypto.jwk import JWKSet
        print(len(JWKSet.from_json(keys)["keys"]))
except Exception as error:
    print("refused:", error)' "$@"
}
set_of() {
    echo "{\"keys\":[$FIRST,${FIRST%\}},$1}]}"
}
seen 'joserfc: use sig' 2 "$(keys_of joserfc "$(set_of '"use":"sig"')")"
seen 'joserfc: unknown kty' 1 "$(keys_of joserfc "{\"keys\":[$FIRST,{\"kty\":\"x-a\"}]}")"
seen 'joserfc: use x-a' "refused: key_parameter: 'use' must be one of ['sig', 'enc']" \
    "$(keys_of joserfc "$(set_of '"use":"x-a"')")"
seen 'joserfc: key_ops x-a' "refused: key_parameter: 'key_ops' must be one" \
    "$(keys_of joserfc "$(set_of '"key_ops":["x-a"]')" | cut -d ' ' -f 1-6)"
seen 'jwcrypto: use x-a' 2 "$(keys_of jwcrypto "$(set_of '"use":"x-a","kid":"b"')")"
seen 'jwcrypto: key_ops x-a' 2 "$(keys_of jwcrypto "$(set_of '"key_ops":["x-a"],"kid":"b"')")"
seen 'jose: use x-a' true "$(node --input-type=module -e '
    import { importJWK } from "jose";
    const key = { ...JSON.parse(process.argv[1]), alg: "HS256", use: "x-a" };
    console.log((await importJWK(key)) instanceof Uint8Array);' "$FIRST")"
