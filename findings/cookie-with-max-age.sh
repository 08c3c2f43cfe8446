#!/usr/bin/env bash
# Set-Cookie: a=b; Max-Age=0
#
# RFC 6265, section 5.3: Max-Age, where it is there, decides on the lifetime, whatever Expires says; 0 ends a cookie.
# Section 5.1.4: a cookie of the path /x is for /x and for what is below /x/, and not for /xy.
# Guess: a cookie jar of 50 million downloads a month knows the two attributes.
# Seen: cookiejar 2.1.4 (npm), which superagent uses, ignores Max-Age: a cookie that a server takes back is sent on,
# and one with a past Expires and Max-Age=60 is dropped. It sends the cookie of /x for /xy. tough-cookie 6.1.0 (npm)
# does each of the four as the RFC says.
# A test of a site by superagent's agent sees a cookie after the logout that took it back.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install cookiejar@2.1.4 tough-cookie@6.1.0
cat >ask.js <<'JS'
const [library, path, ...cookies] = process.argv.slice(2);
if (library === "cookiejar") {
    const { CookieAccessInfo, CookieJar } = require("cookiejar");
    const jar = new CookieJar();
    for (const cookie of cookies) jar.setCookie(cookie, "a.example", "/");
    console.log(jar.getCookies(new CookieAccessInfo("a.example", path, false, false)).toValueString() || "none");
} else {
    const jar = new (require("tough-cookie").CookieJar)();
    for (const cookie of cookies) jar.setCookieSync(cookie, "http://a.example/");
    console.log(jar.getCookieStringSync(`http://a.example${path}`) || "none");
}
JS
past='Expires=Wed, 21 Oct 2015 07:28:00 GMT'
# ask LIBRARY OF_ZERO OF_PAST OF_BOTH OF_ANOTHER_PATH
ask() {
    seen "$1: a=b" a=b "$(node ask.js "$1" / a=b)"
    seen "$1: a=b, then Max-Age=0" "$2" "$(node ask.js "$1" / a=b 'a=; Max-Age=0')"
    seen "$1: a=b, then Expires in the past" "$3" "$(node ask.js "$1" / a=b "a=; $past")"
    seen "$1: Max-Age=60 and Expires in the past" "$4" "$(node ask.js "$1" / "a=b; $past; Max-Age=60")"
    seen "$1: Path=/x, asked for /xy" "$5" "$(node ask.js "$1" /xy 'a=b; Path=/x')"
}
ask cookiejar a= none none a=b
ask tough-cookie none none a=b none
