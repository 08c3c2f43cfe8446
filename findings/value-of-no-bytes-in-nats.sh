#!/usr/bin/env bash
# put("a", b"") in a bucket of keys in NATS
#
# NATS, ADR-8 (key-value stores): a value is any bytes, so also none at all; a deleted key is known by its header.
# Guess: the client for Python gives b"" for such a key.
# Seen: get of nats-py 2.16.0 (Python) gives an entry whose value is None, and get_last_msg a message whose data is None. Its
# history gives b"" for the same key, and a subscription b"" for an empty message.
# A program that decodes the value fails at the first empty one, although its tests with watch or history passed.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

nats_server
pip_install nats-py==2.16.0
cat >read.py <<'PY'
import asyncio, os
import nats

async def main():
    connection = await nats.connect(os.environ["ADDRESS"])
    jetstream = connection.jetstream()
    bucket = await jetstream.create_key_value(bucket="keys")
    await bucket.put("a", b"")
    await bucket.put("b", b"1")
    print((await bucket.get("b")).value)
    print((await bucket.get("a")).value)
    print((await bucket.history("a"))[0].value)
    print((await jetstream.get_last_msg("KV_keys", "$KV.keys.a")).data)
    messages = await jetstream.subscribe("$KV.keys.a", ordered_consumer=True)
    print((await messages.next_msg()).data)
    await connection.close()

asyncio.run(main())
PY
v/bin/python read.py >found
seen 'get of a value' "b'1'" "$(sed -n 1p found)"
seen 'get of an empty one' None "$(sed -n 2p found)"
seen 'history of an empty one' "b''" "$(sed -n 3p found)"
seen 'get_last_msg of an empty one' None "$(sed -n 4p found)"
seen 'subscribe to an empty one' "b''" "$(sed -n 5p found)"
