#!/usr/bin/env bash
# gauge("g", -5), to statsd
#
# The format of statsd: g:5|g sets a gauge, and with a sign, g:-5|g or g:+5|g, it changes it by so much. So a gauge is set below
# 0 in two steps, g:0|g and g:-5|g.
# Guess: a client whose function sets a gauge does so with a number below 0, too.
# Seen: node-statsd 0.1.1, statsd-client 0.4.7, lynx 0.2.0, hot-shots 17.1.1 (npm) and aio-statsd 0.2.9 (Python) send g:-5|g
# alone, which takes 5 from the gauge. statsd 4.0.1 (Python) sends both steps.
# A temperature that stays at -5 falls by 5 at each report; agents that know no change of a gauge, as Datadog's, hide it.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install node-statsd@0.1.1 statsd-client@0.4.7 lynx@0.2.0 hot-shots@17.1.1
pip_install statsd==4.0.1 aio-statsd==0.2.9
cat >receive.py <<'PY'
import socket, subprocess, sys

receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
receiver.bind(("127.0.0.1", 0))
subprocess.run([*sys.argv[1:], str(receiver.getsockname()[1])], check=True)
receiver.setblocking(False)
lines = []
try:
    while True:
        lines += receiver.recv(1500).decode().split()
except BlockingIOError:
    print(*lines)
PY
cat >send.js <<'JS'
const [library, value, port] = process.argv.slice(2);
const found = require(library);
const place = { host: "127.0.0.1", port: Number(port) };
const client = library === "lynx" ? new found(place.host, place.port) : new (found.StatsD ?? found)(place);
client.gauge("g", Number(value));
setTimeout(() => client.close(), 200);
JS
cat >send.py <<'PY'
import asyncio, sys

library, value, port = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])

async def send():
    import aio_statsd
    client = aio_statsd.StatsdClient(host="127.0.0.1", port=port)
    await client.connect()
    client.gauge("g", value)
    await asyncio.sleep(0.2)
    await client.close()

if library == "statsd":
    import statsd
    statsd.StatsClient("127.0.0.1", port).gauge("g", value)
else:
    asyncio.run(send())
PY
for library in node-statsd statsd-client lynx hot-shots; do
    seen "$library: 5" 'g:5|g' "$(python3 receive.py node send.js $library 5)"
    seen "$library: -5" 'g:-5|g' "$(python3 receive.py node send.js $library -5)"
done
seen 'aio-statsd: 5' 'g:5|g' "$(python3 receive.py v/bin/python send.py aio-statsd 5)"
seen 'aio-statsd: -5' 'g:-5|g' "$(python3 receive.py v/bin/python send.py aio-statsd -5)"
seen 'statsd: -5' 'g:0|g g:-5|g' "$(python3 receive.py v/bin/python send.py statsd -5)"
