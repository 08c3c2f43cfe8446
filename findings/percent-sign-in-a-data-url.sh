#!/usr/bin/env bash
# data:text/plain;base64,Q%51%3D%3D
#
# RFC 2397, sections 2 and 3: base64 is written in the characters of an address, so that any of them may be escaped there; the type may be
# left out before its parameters, and a value may stand in quotes. RFC 3986, section 3.1: the name of a scheme has no case. RFC 2045,
# section 6.1: nor has "base64", and the grammar of RFC 2397 has it as a text, which is in any case.
# Guess: a library that takes such addresses apart gives the content, "A".
# Seen: python-datauri 3.0.2 and data-url 1.4.0 (Python), and dataurl 0.1.0 (npm), decode base64 with the percent signs in it: for Q%51==
# they give the bytes 43 9d without an error, in place of 41. w3lib 2.5.0 (Python) and data-urls 7.0.0 (npm) give "A".
# data-url and dataurl leave the escapes of plain text as they are, w3lib and the two refuse BASE64, python-datauri and data-url DATA:,
# and data-uri-to-buffer 8.0.0 (npm) gives the base64 itself for BASE64. parse-data-url 6.0.0 (npm) refuses an address without a type.
# An address that went through a program which escapes the equal sign, as a query has it, then gives other bytes.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install python-datauri==3.0.2 data-url==1.4.0 w3lib==2.5.0
npm_install dataurl@0.1.0 data-urls@7.0.0 data-uri-to-buffer@8.0.0 parse-data-url@6.0.0
cat >read.py <<'PY'
import sys
for case in sys.argv[1:]:
    library, address = case.split(" ")
    try:
        if library == "python-datauri":
            from datauri import DataURI
            data = DataURI(address).data
        elif library == "data-url":
            from data_url import DataURL
            found = DataURL.from_url(address)
            data = found.data if found else "refused"
        else:
            from w3lib.url import parse_data_uri
            data = parse_data_uri(address).data
        print(data.hex() if isinstance(data, bytes) else data)
    except ValueError:
        print("refused")
PY
cat >read.mjs <<'JS'
import dataurl from "dataurl";
import whatwg from "data-urls";
import { dataUriToBuffer } from "data-uri-to-buffer";
import parse from "parse-data-url";

const read = {
    dataurl: (address) => dataurl.parse(address).data,
    "data-urls": (address) => whatwg(address).body,
    "data-uri-to-buffer": (address) => dataUriToBuffer(address).buffer,
    "parse-data-url": (address) => parse(address).data ?? "refused",
};
for (const [library, address] of process.argv.slice(2).map((text) => text.split(" "))) {
    const data = read[library](address);
    console.log(typeof data === "string" ? data : Buffer.from(data).toString("hex"));
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
each 'v/bin/python read.py' \
    'python-datauri data:text/plain;base64,QQ==' 41 \
    'python-datauri data:text/plain;base64,Q%51==' 439d \
    'data-url data:text/plain;base64,Q%51==' 439d \
    'w3lib data:text/plain;base64,Q%51==' 41 \
    'python-datauri data:text/plain;base64,QQ%3D%3D' refused \
    'data-url data:text/plain,A%20b' 'A%20b' \
    'w3lib data:text/plain;BASE64,QQ==' refused \
    'python-datauri data:text/plain;BASE64,QQ==' refused \
    'python-datauri DATA:text/plain,x' refused \
    'data-url DATA:text/plain,x' refused \
    'w3lib DATA:text/plain,x' 78
each 'node read.mjs' \
    'data-urls data:text/plain;base64,Q%51==' 41 \
    'data-uri-to-buffer data:text/plain;base64,Q%51==' 41 \
    'dataurl data:text/plain;base64,Q%51==' 439d \
    'dataurl data:text/plain,A%20b' 4125323062 \
    'data-urls data:text/plain;BASE64,QQ==' 41 \
    'data-uri-to-buffer data:text/plain;BASE64,QQ==' 51513d3d \
    'parse-data-url data:text/plain;charset=utf-8,x' x \
    'parse-data-url data:;charset=utf-8,x' refused
