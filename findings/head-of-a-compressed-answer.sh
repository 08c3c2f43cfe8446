#!/usr/bin/env bash
# HEAD / with Accept-Encoding: gzip
#
# RFC 9110, section 8.6: a server must not send Content-Length in an answer to HEAD unless it equals the number of
# bytes that GET would have brought. Section 9.3.2 lets it leave the field out.
# Guess: the length of the gzip form, or none.
# Seen: hapi 21.4.10 (npm) says the length of the plain form next to the entity tag of the gzip form. compression
# 1.8.2 (npm, for Express) says it next to the common tag. The answers to GET with the same request fields are
# shorter.
# By RFC 9111, section 4.3.5, a cache should take its stored gzip answer for stale when such an answer to HEAD passes.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install @hapi/hapi@21.4.10 compression@1.8.2
cat >ask.js <<'JS'
const http = require("http");
const TEXT = "hello ".repeat(500);
const apps = {
    async hapi() {
        const app = require("@hapi/hapi").server({ port: 0, host: "127.0.0.1" });
        app.route({ method: "GET", path: "/", handler: (_, kit) => kit.response(TEXT).type("text/plain").etag("1") });
        await app.start();
        return app.listener;
    },
    async compression() {
        const compress = require("compression")();
        const server = http.createServer((request, response) => compress(request, response, () => {
            response.setHeader("content-type", "text/plain");
            response.setHeader("content-length", TEXT.length);
            response.setHeader("etag", '"1"');
            response.end(TEXT);
        }));
        await new Promise((done) => server.listen(0, "127.0.0.1", done));
        return server;
    },
};
apps[process.argv[2]]().then((server) => {
    const method = process.argv[3], headers = { "accept-encoding": "gzip" };
    http.request({ method, host: "127.0.0.1", port: server.address().port, headers, agent: false }, (answer) => {
        let size = 0;
        answer.on("data", (data) => { size += data.length; });
        answer.on("end", () => {
            const length = answer.headers["content-length"] || "no length";
            console.log(length, answer.headers.etag, method === "GET" ? size < TEXT.length ? "short" : "long" : "");
            process.exit();
        });
    }).end();
});
JS
seen 'hapi: GET' 'no length "1-gzip" short' "$(node ask.js hapi GET)"
seen 'hapi: HEAD' '3000 "1-gzip" ' "$(node ask.js hapi HEAD)"
seen 'compression: GET' 'no length "1" short' "$(node ask.js compression GET)"
seen 'compression: HEAD' '3000 "1" ' "$(node ask.js compression HEAD)"
