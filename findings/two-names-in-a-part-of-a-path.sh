#!/usr/bin/env bash
# /flights/:from-:to, and the address /flights/a-b-c
#
# URL Pattern (WHATWG): a name stands for [^/]+?, an expression that takes as few characters as it can. The guides of Express
# and of Fastify both have routes with two names in one part of a path.
# Guess: routers with this syntax give the same two values.
# Seen: path-to-regexp 9.0.0 (npm, below Express), rou3 1.0.0 and urlpattern-polyfill 10.1.0 (npm) give a and b-c. find-my-way
# 9.10.2 (npm, below Fastify) and url-pattern 1.0.3 (npm) give a-b and c. regexparam 3.0.0 (npm) gives one value, a-b-c, and
# radix3 1.1.2 (npm) one under the name `from-:to`.
# A program that moves from Express to Fastify answers such addresses for others.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install path-to-regexp@9.0.0 rou3@1.0.0 urlpattern-polyfill@10.1.0 find-my-way@9.10.2 url-pattern@1.0.3 regexparam@3.0.0 \
    radix3@1.1.2
cat >route.js <<'JS'
const [library, path] = process.argv.slice(2);
const route = "/flights/:from-:to";
const routers = {
    "path-to-regexp": ({ match }) => match(route)(path).params,
    rou3({ addRoute, createRouter, findRoute }) {
        const router = createRouter();
        addRoute(router, "GET", route, {});
        return findRoute(router, "GET", path).params;
    },
    "urlpattern-polyfill": ({ URLPattern }) => new URLPattern({ pathname: route }).exec({ pathname: path }).pathname.groups,
    "find-my-way"({ default: create }) {
        const router = create();
        router.on("GET", route, () => {});
        return router.find("GET", path).params;
    },
    "url-pattern": ({ default: Pattern }) => new Pattern(route).match(path),
    regexparam: ({ parse }) => parse(route).pattern.exec(path).slice(1),
    radix3({ createRouter }) {
        const router = createRouter();
        router.insert(route, {});
        return router.lookup(path).params;
    },
};
import(library).then(read => console.log(JSON.stringify(routers[library](read))));
JS
for library in path-to-regexp rou3 urlpattern-polyfill find-my-way url-pattern; do
    seen "$library: a-b" '{"from":"a","to":"b"}' "$(node route.js $library /flights/a-b)"
done
for library in path-to-regexp rou3 urlpattern-polyfill; do
    seen "$library: a-b-c" '{"from":"a","to":"b-c"}' "$(node route.js $library /flights/a-b-c)"
done
for library in find-my-way url-pattern; do
    seen "$library: a-b-c" '{"from":"a-b","to":"c"}' "$(node route.js $library /flights/a-b-c)"
done
seen 'regexparam: a-b-c' '["a-b-c"]' "$(node route.js regexparam /flights/a-b-c)"
seen 'radix3: a-b-c' '{"from-:to":"a-b-c"}' "$(node route.js radix3 /flights/a-b-c)"
