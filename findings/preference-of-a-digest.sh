#!/usr/bin/env bash
# Want-Content-Digest: sha-512=3, sha-256=10, unixsum=0
#
# RFC 9530, section 4: a dictionary of algorithms, each with its weight, an integer from 0 to 10; 0 means "not this one". The
# field is an example of it. A field of the older RFC 3230, Want-Digest, has q=0.3 behind a semicolon.
# Guess: a library of the new fields finds SHA-256 to be the most wanted one.
# Seen: digest-fields-parse 0.1.1 (Python) finds an algorithm "sha-512=3" and two more, all of weight
# 1, and writes the form of RFC 3230. It takes a parameter of Content-Digest for a part of the digest, whose padding it drops.
# contentdigest 1.0.0 (Python) reads both as meant.
# A server by the first finds no algorithm that it knows, and sends no digest.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install digest-fields-parse==0.1.1 contentdigest==1.0.0
cat >read.py <<'PY'
import base64, sys
import contentdigest, digest_fields_parse

library, name, field = sys.argv[1:]
if library == "contentdigest" and name == "want":
    print(*(f"{name}:{weight}" for name, weight in contentdigest.parse_want(field).items()))
elif library == "contentdigest":
    print(*(f"{name}:{base64.b64encode(value).decode()}" for name, value in contentdigest.parse(field).items()))
elif name == "want":
    print(*(f"{one.algorithm}:{one.q}" for one in digest_fields_parse.parse_want_content_digest(field)))
elif name == "write":
    print(digest_fields_parse.serialize_want_content_digest([digest_fields_parse.DigestPreference(field, 1.0)]))
else:
    print(*(f"{name}:{value}" for name, value in digest_fields_parse.parse_content_digest(field).items()))
PY
read_field() {
    v/bin/python read.py "$@"
}
WANT='sha-512=3, sha-256=10, unixsum=0'
seen 'contentdigest: want' 'sha-512:3 sha-256:10 unixsum:0' "$(read_field contentdigest want "$WANT")"
seen 'digest-fields-parse: want' 'sha-512=3:1.0 sha-256=10:1.0 unixsum=0:1.0' "$(read_field digest-fields-parse want "$WANT")"
seen 'digest-fields-parse: written' 'sha-256;q=1' "$(read_field digest-fields-parse write sha-256)"
seen 'contentdigest: ;a=1' 'sha-256:AQ==' "$(read_field contentdigest content 'sha-256=:AQ==:;a=1')"
seen 'digest-fields-parse: AQ==' 'sha-256:AQ' "$(read_field digest-fields-parse content 'sha-256=:AQ==:')"
seen 'digest-fields-parse: ;a=1' 'sha-256:AQ==:;a=1' "$(read_field digest-fields-parse content 'sha-256=:AQ==:;a=1')"
