#!/usr/bin/env bash
# keys("a.*") and keys("b") of a bucket of keys in NATS, with the keys a.b, ab, b and c.a.b
#
# NATS, ADR-8 (key-value stores): keys are listed by filters, and watched by the wildcards of subjects, as a.* or >.
# Guess: the filters are those wildcards, so that the client for Python gives a.b for the one, and b for the other.
# Seen: nats-py 2.16.0 (Python) gives every key that has the text of the filter anywhere in it: all four for b, and for a.* none,
# which it reports as an empty bucket, by NoKeysError. Its watch takes wildcards. @nats-io/kv 3.4.0 (npm) gives a.b and b.
# A filter for one key finds more, and one with a wildcard finds nothing.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

nats_server
npm_install @nats-io/transport-node@3.4.0 @nats-io/jetstream@3.4.0 @nats-io/kv@3.4.0
pip_install nats-py==2.16.0
cat >list.mjs <<'JS'
import { connect } from "@nats-io/transport-node";
import { Kvm } from "@nats-io/kv";

const connection = await connect({ servers: process.env.ADDRESS });
const bucket = await new Kvm(connection).create("keys");
for (const key of ["a.b", "ab", "b", "c.a.b"]) await bucket.put(key, "1");
for (const filter of ["a.*", "b"]) {
    const keys = [];
    for await (const key of await bucket.keys(filter)) keys.push(key);
    console.log(keys.join(" "));
}
await connection.close();
JS
cat >list.py <<'PY'
import asyncio, os
import nats

async def main():
    connection = await nats.connect(os.environ["ADDRESS"])
    bucket = await connection.jetstream().key_value("keys")
    for filter in "a.*", "b":
        try:
            print(*sorted(await bucket.keys([filter])))
        except nats.js.errors.NoKeysError:
            print("NoKeysError")
    print((await (await bucket.watch("a.*")).updates()).key)
    await connection.close()

asyncio.run(main())
PY
node list.mjs >node.log
v/bin/python list.py >python.log 2>/dev/null
seen 'Node: a.*' a.b "$(sed -n 1p node.log)"
seen 'Node: b' b "$(sed -n 2p node.log)"
seen 'Python: a.*' NoKeysError "$(sed -n 1p python.log)"
seen 'Python: b' 'a.b ab b c.a.b' "$(sed -n 2p python.log)"
seen 'Python: watch a.*' a.b "$(sed -n 3p python.log)"
