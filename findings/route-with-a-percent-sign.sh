#!/usr/bin/env bash
# a route for /a%20b, and the address /a%20b
#
# RFC 3986, section 6.2.2.2: the encoded and the plain form of a character such as a hyphen are equivalent; a blank has its
# encoded form alone, so that an address shows %20.
# Guess: a router finds the route whose text is the address, letter by letter.
# Seen: find-my-way 9.10.2 (npm, below Fastify) does not, for any route with a percent sign: it decodes the address, and not
# the route, so that the route has to have a blank. path-to-regexp 9.0.0 (npm, below Express) finds it, and finds none for a
# route with a blank, nor /a%2Db for /a-b, which find-my-way finds.
# Routes of one cannot be taken over by the other where a name has a blank or an umlaut.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install find-my-way@9.10.2 path-to-regexp@9.0.0
# find LIBRARY ROUTE ADDRESS
find() {
    node -e '
const [library, route, address] = process.argv.slice(1);
import(library).then(read => {
    if (library === "path-to-regexp") return console.log(read.match(route)(address) !== false);
    const router = read.default();
    router.on("GET", route, () => {});
    console.log(router.find("GET", address) !== null);
});' "$@"
}
seen 'find-my-way: as it stands' false "$(find find-my-way /a%20b /a%20b)"
seen 'find-my-way: route with a blank' true "$(find find-my-way '/a b' /a%20b)"
seen 'find-my-way: %3B' false "$(find find-my-way /a%3Bb /a%3Bb)"
seen 'find-my-way: /a-b for /a%2Db' true "$(find find-my-way /a-b /a%2Db)"
seen 'path-to-regexp: as it stands' true "$(find path-to-regexp /a%20b /a%20b)"
seen 'path-to-regexp: route with a blank' false "$(find path-to-regexp '/a b' /a%20b)"
seen 'path-to-regexp: /a-b for /a%2Db' false "$(find path-to-regexp /a-b /a%2Db)"
