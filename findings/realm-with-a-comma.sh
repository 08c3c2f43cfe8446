#!/usr/bin/env bash
# WWW-Authenticate: Digest realm="r, a", nonce="n", qop="auth"
#
# RFC 7616, section 3.3: the realm is a quoted text, with any letters, and so are nonce and opaque. A password may have
# colons in it; a user's name may not (section 3.4).
# Guess: a client for Digest reads the text to its last quote, and the password to its end.
# Seen: digest-header 1.1.0 (npm) cuts the realm at a comma, and at an apostrophe, and the password "p:q" at its colon. httpx
# 0.28.1 and requests 2.34.2 (Python) answer each challenge right.
# The server refuses the right password, and the client has no way to tell why.
# shellcheck disable=SC2016 # JavaScript, with its own variables
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install digest-header@1.1.0
pip_install httpx==0.28.1 requests==2.34.2
cat >answer.py <<'PY'
import sys
library, realm, password = sys.argv[1:]
challenge = f'Digest realm="{realm}", nonce="n", qop="auth"'
if library == "httpx":
    import httpx
    request = httpx.Request("GET", "http://a.example/a")
    flow = httpx.DigestAuth("u", password).auth_flow(request)
    next(flow)
    flow.send(httpx.Response(401, headers={"WWW-Authenticate": challenge}, request=request))
    print(request.headers["Authorization"])
else:
    import requests.auth, requests.utils
    client = requests.auth.HTTPDigestAuth("u", password)
    client.init_per_thread_state()
    client._thread_local.chal = requests.utils.parse_dict_header(challenge[7:])
    print(client.build_digest_header("GET", "http://a.example/a"))
PY
cat >check.py <<'PY'
import hashlib, re, sys

def md5(*parts):
    return hashlib.md5(":".join(parts).encode()).hexdigest()

realm, password = sys.argv[1:]
given = {name: quoted or word for name, quoted, word in re.findall(r'(\w+)=(?:"([^"]*)"|([^\s,]+))', sys.stdin.read())}
expected = md5(md5("u", realm, password), "n", given["nc"], given["cnonce"], "auth", md5("GET", "/a"))
print(given["realm"], "/", "right" if given["response"] == expected else "wrong")
PY
answer() {
    if [[ $1 == digest-header ]]; then
        node -p '
            const [realm, password] = process.argv.slice(1);
            require("digest-header")("GET", "/a", `Digest realm="${realm}", nonce="n", qop="auth"`, "u:" + password)' "${@:2}"
    else
        v/bin/python answer.py "$@"
    fi | python3 check.py "${@:2}"
}
for library in httpx requests; do
    for realm in ra 'r, a' "r's"; do
        seen "$library: $realm" "$realm / right" "$(answer $library "$realm" p)"
    done
    seen "$library: password p:q" 'ra / right' "$(answer $library ra p:q)"
done
seen 'digest-header: ra' 'ra / right' "$(answer digest-header ra p)"
seen 'digest-header: r, a' 'r / wrong' "$(answer digest-header 'r, a' p)"
seen "digest-header: r's" 'r / wrong' "$(answer digest-header "r's" p)"
seen 'digest-header: password p:q' 'ra / wrong' "$(answer digest-header ra p:q)"
