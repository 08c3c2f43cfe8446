#!/usr/bin/env bash
# allowed origins: https://a.example, https://b.example
#
# Fetch standard, "CORS protocol and HTTP caches": a server that names one of several origins has to send Vary: Origin,
# also in answers to requests of other origins and to those without Origin.
# Guess: libraries that hold a list of origins do so. cors 2.8.6 for Express, @fastify/cors and Starlette do.
# Seen: aiohttp-cors 0.8.1 (Python) never sends Vary. Flask-Cors 6.0.5 (Python) leaves it out for an origin that is not
# in its list, and names https://a.example in answer to a request without Origin.
# A shared cache that follows the rules gives the answer of one origin to another, whose page the browser then refuses.
# An operator of such a program has to add the field in front of it.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install aiohttp==3.14.5 aiohttp-cors==0.8.1 flask==3.1.3 flask-cors==6.0.5
cat >ask.py <<'PY'
import asyncio, sys
ORIGINS = ["https://a.example", "https://b.example"]

def of_flask(fields):
    from flask import Flask
    from flask_cors import CORS
    app = Flask(__name__)
    app.get("/")(lambda: "hello")
    CORS(app, origins=ORIGINS)
    return app.test_client().get("/", headers=fields).headers

def of_aiohttp(fields):
    import aiohttp_cors
    from aiohttp import web
    from aiohttp.test_utils import TestClient, TestServer
    async def hello(_):
        return web.Response(text="hello")
    async def ask():
        app = web.Application()
        options = {origin: aiohttp_cors.ResourceOptions() for origin in ORIGINS}
        aiohttp_cors.setup(app, defaults=options).add(app.router.add_get("/", hello))
        async with TestClient(TestServer(app)) as client:
            return (await client.get("/", headers=fields)).headers
    return asyncio.run(ask())

name, *origin = sys.argv[1:]
fields = {"flask": of_flask, "aiohttp": of_aiohttp}[name]({"Origin": origin[0]} if origin else {})
print(fields.get("Access-Control-Allow-Origin", "none"), "/", fields.get("Vary", "none"))
PY
seen 'aiohttp-cors: https://a.example' 'https://a.example / none' "$(v/bin/python ask.py aiohttp https://a.example)"
seen 'aiohttp-cors: https://c.example' 'none / none' "$(v/bin/python ask.py aiohttp https://c.example)"
seen 'aiohttp-cors: no Origin' 'none / none' "$(v/bin/python ask.py aiohttp)"
seen 'Flask-Cors: https://a.example' 'https://a.example / Origin' "$(v/bin/python ask.py flask https://a.example)"
seen 'Flask-Cors: https://c.example' 'none / none' "$(v/bin/python ask.py flask https://c.example)"
seen 'Flask-Cors: no Origin' 'https://a.example / Origin' "$(v/bin/python ask.py flask)"

npm_install express@5.3.0 cors@2.8.6
cat >ask.js <<'JS'
const app = require("express")();
app.use(require("cors")({ origin: ["https://a.example", "https://b.example"] }));
app.get("/", (_, response) => response.send("hello"));
const server = app.listen(0, "127.0.0.1", async () => {
    const origin = process.argv[2];
    const answer = await fetch(`http://127.0.0.1:${server.address().port}/`, origin ? { headers: { origin } } : {});
    console.log(answer.headers.get("access-control-allow-origin") ?? "none", "/", answer.headers.get("vary"));
    process.exit();
});
JS
seen 'Express with cors: https://a.example' 'https://a.example / Origin' "$(node ask.js https://a.example)"
seen 'Express with cors: https://c.example' 'none / Origin' "$(node ask.js https://c.example)"
seen 'Express with cors: no Origin' 'none / Origin' "$(node ask.js)"
