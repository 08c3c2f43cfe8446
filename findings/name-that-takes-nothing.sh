#!/usr/bin/env bash
# /users/:id, and the address /users/
#
# URL Pattern (WHATWG), "Patterns and matching": a name takes one character at least, unless a question mark or a star follows.
# Guess: /users/ is not for this route.
# Seen: find-my-way 9.10.2 (npm, below Fastify) takes the route, and gives an empty id. path-to-regexp 9.0.0, rou3 1.0.0 and
# regexparam 3.0.0 (npm) find none. radix3 1.1.2 (npm) finds none for /users/, and an empty id for /users//.
# A program that looks for all that belongs to the id finds what belongs to nobody, or everything.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install path-to-regexp@9.0.0 rou3@1.0.0 find-my-way@9.10.2 regexparam@3.0.0 radix3@1.1.2
cat >route.js <<'JS'
const [library, path] = process.argv.slice(2);
const route = "/users/:id";
const routers = {
    "path-to-regexp": ({ match }) => match(route)(path).params,
    rou3({ addRoute, createRouter, findRoute }) {
        const router = createRouter();
        addRoute(router, "GET", route, {});
        return findRoute(router, "GET", path)?.params;
    },
    "find-my-way"({ default: create }) {
        const router = create();
        router.on("GET", route, () => {});
        return router.find("GET", path)?.params;
    },
    regexparam: ({ parse }) => parse(route).pattern.exec(path)?.slice(1),
    radix3({ createRouter }) {
        const router = createRouter();
        router.insert(route, {});
        return router.lookup(path)?.params;
    },
};
import(library).then(read => console.log(JSON.stringify(routers[library](read))));
JS
for library in path-to-regexp rou3 find-my-way radix3; do
    seen "$library: /users/1" '{"id":"1"}' "$(node route.js $library /users/1)"
done
for library in path-to-regexp rou3 regexparam radix3; do
    seen "$library: /users/" undefined "$(node route.js $library /users/)"
done
seen 'find-my-way: /users/' '{"id":""}' "$(node route.js find-my-way /users/)"
seen 'radix3: /users//' '{"id":""}' "$(node route.js radix3 /users//)"
