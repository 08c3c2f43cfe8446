#!/usr/bin/env bash
# NATS/1.0
# A: 1
# A: 2
#
# NATS, ADR-4 (message headers): a header may have several lines of one name, as in HTTP, and clients give all values.
# Guess: a client in Python gives both values, or the two joined.
# Seen: nats-py 2.16.0 (Python) gives 2 alone, and has no way to send both, as its headers are a dictionary. nats 2.29.3 (npm)
# sends and gives both.
# Of a chain of addresses that a program in Node passes on, one in Python sees the last.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

nats_server
pip_install nats-py==2.16.0
npm_install nats@2.29.3

cat >echo.js <<'JS'
const { connect, headers } = require("nats");
(async () => {
    const connection = await connect({ servers: process.env.ADDRESS });
    const fields = headers();
    fields.append("A", "1");
    fields.append("A", "2");
    const own = connection.subscribe("own", { max: 1 });
    connection.publish("own", "", { headers: fields });
    for await (const message of own) console.log(message.headers.values("A").join());
    connection.subscribe("ask", { callback: (error, message) => message.respond("", { headers: fields }) });
    await connection.flush();
    console.log("ready");
})();
JS
cat >ask.py <<'PY'
import asyncio, os
import nats

async def main():
    connection = await nats.connect(os.environ["ADDRESS"])
    print((await connection.request("ask", b"")).headers)
    await connection.close()

asyncio.run(main())
PY
: >log
node echo.js >>log &
servers+=($!)
until grep -q ready log; do sleep 0.1; done
seen 'nats of npm' 1,2 "$(head -1 log)"
seen 'nats-py' "{'A': '2'}" "$(v/bin/python ask.py)"
