#!/usr/bin/env bash
# Retry-After: 0
#
# RFC 9110, section 10.2.3: the value is a date, or a number of seconds from 0 on, after which the client may ask again.
# Guess: a client that retries by this field asks again at once.
# Seen: got 14.6.6 (npm) takes 0 for "no field", and waits by its own rule, for more than a second: longer than for
# Retry-After: 1. For a date that is past it waits a millisecond. undici 7.30.2 (npm) waits half a second for both.
# urllib3 2.8.0 (Python) reads 0 for both.
# A server whose trouble is over does better to say 1 than 0, for clients on got.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install got@14.6.6 undici@7.30.2
cat >ask.mjs <<'JS'
import { createServer } from "http";
import got from "got";
import { Agent, RetryAgent, request } from "undici";

const [library, field] = process.argv.slice(2);
const times = [];
const server = createServer((_, response) => {
    times.push(performance.now());
    response.writeHead(503, { "retry-after": field }).end();
});
server.listen(0, "127.0.0.1", async () => {
    const address = `http://127.0.0.1:${server.address().port}/`;
    if (library === "got") {
        let wait;
        const calculateDelay = ({ computedValue }) => {
            wait ??= computedValue;
            return 0;
        };
        await got(address, { retry: { limit: 1, calculateDelay } }).catch(() => {});
        console.log(wait === 1000 ? "1000 ms" : wait > 1000 ? "more than 1000 ms" : `${wait} ms`);
    } else {
        const dispatcher = new RetryAgent(new Agent(), { maxRetries: 1 });
        await request(address, { dispatcher }).catch(() => {});
        console.log(times[1] - times[0] > 400 ? "waits" : "at once");
    }
    process.exit();
});
JS
pip_install urllib3==2.8.0
PAST='Sun, 06 Nov 1994 08:49:37 GMT'
seen 'got: 1' '1000 ms' "$(node ask.mjs got 1)"
seen 'got: 0' 'more than 1000 ms' "$(node ask.mjs got 0)"
seen 'got: a date that is past' '1 ms' "$(node ask.mjs got "$PAST")"
seen 'undici: 0' waits "$(node ask.mjs undici 0)"
seen 'undici: a date that is past' waits "$(node ask.mjs undici "$PAST")"
for field in 0 "$PAST"; do
    seen "urllib3: ${field:0:11}" 0 "$(v/bin/python -c '
import sys, urllib3
print(round(urllib3.Retry().parse_retry_after(sys.argv[1])))' "$field")"
done
