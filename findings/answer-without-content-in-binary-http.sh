#!/usr/bin/env bash
# 01 40cc 00 00 00: 204 in Binary HTTP, and GET /x?y, written as Binary HTTP
#
# RFC 9292, sections 3.5 and 3.6: a message has its control data, fields, content and trailer section, and content may be empty. Section
# 3.4: the path of a request is that of :path in HTTP/2, which RFC 9113, section 8.3.1, has with the query. Fields may come twice, as
# Set-Cookie has to (RFC 9110, section 5.3).
# Guess: a library that writes and reads this format reads answers of each status, keeps both fields, and keeps the query.
# Seen: bhttp-js 0.2.1 (npm) fails at 204 and 304, which it writes itself, gives the last of two fields of a name alone, and writes a
# request for /x?y as one for /x. It reads /x?y, if another program wrote it.
# A gateway for Oblivious HTTP that is made with it loses queries and cookies, and an answer to If-None-Match.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install bhttp-js@0.2.1
cat >use.mjs <<'JS'
import { BHttpDecoder, BHttpEncoder } from "bhttp-js";

const printed = (bytes) => Buffer.from(bytes).toString("latin1").replace(/[^ -~]/g, (c) => `<${c.charCodeAt(0).toString(16)}>`);
const bytes = (text) => Buffer.from(text.replace(/<([0-9a-f]+)>/g, (_, code) => String.fromCharCode(parseInt(code, 16))), "latin1");
const actions = {
    answer: (text) => {
        const answer = new BHttpDecoder().decodeResponse(bytes(text));
        return `${answer.status} ${JSON.stringify([...answer.headers])}`;
    },
    request: (text) => new BHttpDecoder().decodeRequest(bytes(text)).url,
    status: async (status) => printed(await new BHttpEncoder().encodeResponse(new Response(null, { status: Number(status) }))),
    address: async (address) => printed(await new BHttpEncoder().encodeRequest(new Request(address))),
};
for (const [action, value] of process.argv.slice(2).map((text) => text.split(" "))) {
    try {
        console.log(await actions[action](value));
    } catch (error) {
        console.log(error.message);
    }
}
JS
# each COMMAND CASE EXPECTED...: COMMAND runs once, with all cases, and prints a line for each
each() {
    local command cases=() expected=() found i
    read -ra command <<<"$1"
    shift
    while (($#)); do
        cases+=("$1")
        expected+=("$2")
        shift 2
    done
    mapfile -t found < <("${command[@]}" "${cases[@]}")
    for i in "${!cases[@]}"; do seen "${command[*]:1} ${cases[i]}" "${expected[i]}" "${found[i]-}"; done
}
each 'node use.mjs' \
    'answer <1><40><c8><0><0><0>' '200 []' \
    'status 204' '<1>@<cc><0><0><0>' \
    'answer <1><40><cc><0><0><0>' 'Response constructor: Invalid response status code 204' \
    'answer <1><41><30><0><0><0>' 'Response constructor: Invalid response status code 304' \
    'answer <1><40><c8><1e><a>set-cookie<3>a=1<a>set-cookie<3>b=2<0><0>' '200 [["set-cookie","b=2"]]' \
    'request <0><3>GET<5>https<9>a.example<4>/x?y<0><0><0>' 'https://a.example/x?y' \
    'address https://a.example/x?y' '<0><3>GET<5>https<9>a.example<2>/x<0><0><0>'
