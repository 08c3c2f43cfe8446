#!/usr/bin/env bash
# Set-Cookie: a=b; Path=/; Partitioned
#
# RFC 6265, section 5.2: attributes that a client does not know are ignored, whether they have a value or not.
# Partitioned came after the RFC, as SameSite did.
# Guess: a parser gives the cookie, with or without its newest attribute.
# Seen: http.cookies of Python 3.11 gives no cookie and no error, for any unknown attribute without a value, wherever it
# stands. One with a value, Priority=High, becomes a second cookie. set-cookie-parser 3.2.3 (npm) gives one cookie with
# both.
# Whoever reads answers by SimpleCookie loses the session cookies of embedded pages.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

python() {
    python3 -c '
import sys
from http.cookies import SimpleCookie
cookies = SimpleCookie(sys.argv[1])
print(*(f"{name}={cookie.value}" for name, cookie in cookies.items()) if cookies else ["none"])' "$1"
}
npm_install set-cookie-parser@3.2.3
js() {
    node -p '
        const { parseSetCookie } = require("set-cookie-parser");
        parseSetCookie(process.argv[1]).map(({ name, value }) => name + "=" + value).join(" ")' "$1"
}
python3 --version
seen 'Python: Path=/; Secure' a=b "$(python 'a=b; Path=/; Secure')"
seen 'Python: Path=/; Partitioned' none "$(python 'a=b; Path=/; Partitioned')"
seen 'Python: Partitioned; Path=/' none "$(python 'a=b; Partitioned; Path=/')"
seen 'Python: Path=/; Priority=High' 'a=b Priority=High' "$(python 'a=b; Path=/; Priority=High')"
seen 'set-cookie-parser: Partitioned' a=b "$(js 'a=b; Path=/; Partitioned')"
seen 'set-cookie-parser: Priority=High' a=b "$(js 'a=b; Path=/; Priority=High')"
