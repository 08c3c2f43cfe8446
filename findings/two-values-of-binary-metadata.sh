#!/usr/bin/env bash
# trace-bin: AA,/w, and grpc-timeout: 100000000S
#
# gRPC, "PROTOCOL-HTTP2": two values of a key may be joined with a comma, and a reader of a key that ends with -bin has to split them
# before it decodes base64, with or without padding. The value of grpc-timeout has at most 8 digits.
# Guess: the library for gRPC in pure Python reads two values, and writes a time that others read.
# Seen: grpclib 0.4.9 (Python) decodes both values and the comma between them as one, which gives the bytes 00 0f f0 in place of 00 and ff,
# without an error. It writes 100000000S for a deadline of three years, and 10S for 10.4 seconds.
# Some proxies join lines of a field; metadata that are signed or encoded then become others on the way.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install grpclib==0.4.9
cat >use.py <<'PY'
import sys
from grpclib.metadata import decode_metadata, encode_timeout
for case in sys.argv[1:]:
    action, *values = case.split(" ")
    if action == "timeout":
        print(encode_timeout(float(values[0])))
    else:
        print(*(value.hex() for value in decode_metadata([("a-bin", value) for value in values]).getall("a-bin")))
PY
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
each 'v/bin/python use.py' \
    'read AA /w' '00 ff' \
    'read AA== /w==' '00 ff' \
    'read AA,/w' 000ff0 \
    'timeout 0.5' 500m \
    'timeout 10.4' 10S \
    'timeout 99999999' 99999999S \
    'timeout 100000000' 100000000S
