#!/usr/bin/env bash
# delete("a"), and get("a") of a bucket of keys in NATS
#
# NATS, ADR-8 (key-value stores): a key is deleted by a message that marks it so, which a plain get turns into "key not found".
# Guess: get gives null to a program in Node, as for a key that never was, and an error to one in Python.
# Seen: @nats-io/kv 3.4.0 (npm) gives an entry, with an empty value and the operation DEL; for a key that never was, null.
# nats-py 2.16.0 (Python) raises KeyNotFoundError for both. With objects it is the other way round: the list of nats-py has
# deleted ones, and that of @nats-io/obj 3.4.0 (npm) has none.
# A program in Node that asks `if (await bucket.get(key))` takes a deleted key for one with an empty value.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

nats_server
npm_install @nats-io/transport-node@3.4.0 @nats-io/jetstream@3.4.0 @nats-io/kv@3.4.0 @nats-io/obj@3.4.0
pip_install nats-py==2.16.0
cat >write.mjs <<'JS'
import { connect } from "@nats-io/transport-node";
import { Kvm } from "@nats-io/kv";
import { Objm } from "@nats-io/obj";

const connection = await connect({ servers: process.env.ADDRESS });
const bucket = await new Kvm(connection).create("keys");
await bucket.put("a", "1");
await bucket.delete("a");
await bucket.put("empty", "");
for (const key of ["never", "a", "empty"]) {
    const entry = await bucket.get(key);
    console.log(entry && `${entry.operation} '${entry.string()}'`);
}
const objects = await new Objm(connection).create("objects");
for (const name of ["b", "c"]) await objects.put({ name }, new Blob(["1"]).stream());
await objects.delete("b");
console.log((await objects.list()).map(({ name }) => name).join(" "));
await connection.close();
JS
cat >read.py <<'PY'
import asyncio, os
import nats

async def main():
    connection = await nats.connect(os.environ["ADDRESS"])
    jetstream = connection.jetstream()
    bucket = await jetstream.key_value("keys")
    for key in "never", "a":
        try:
            print(await bucket.get(key))
        except nats.js.errors.KeyNotFoundError:
            print("KeyNotFoundError")
    print(*sorted(known.name for known in await (await jetstream.object_store("objects")).list()))
    await connection.close()

asyncio.run(main())
PY
node write.mjs >node.log
v/bin/python read.py >python.log
seen 'Node: a key that never was' null "$(sed -n 1p node.log)"
seen 'Node: a deleted one' "DEL ''" "$(sed -n 2p node.log)"
seen 'Node: an empty one' "PUT ''" "$(sed -n 3p node.log)"
seen 'Node: objects, of which b is deleted' c "$(sed -n 4p node.log)"
seen 'Python: a key that never was' KeyNotFoundError "$(sed -n 1p python.log)"
seen 'Python: a deleted one' KeyNotFoundError "$(sed -n 2p python.log)"
seen 'Python: objects, of which b is deleted' 'b c' "$(sed -n 3p python.log)"
