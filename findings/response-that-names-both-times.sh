#!/usr/bin/env bash
# type: CLIENT_RESPONSE, with query_time_sec: 100 and response_time_sec: 103, in a message of dnstap
#
# dnstap.proto: a response may have the time of its query, too, so that one message says how long an answer took; servers are told
# to log responses alone. The family and protocol of the socket are optional.
# Guess: a receiver that gives a latency takes it from the two times, and has nothing for a socket that is not named.
# Seen: dnstap-receiver 4.7.0 (Python) gives `-` for the latency of such a response, as it counts from a query that it saw before,
# of the same address, port and identifier. For a message without a socket it gives INET and UDP, and NOERROR for BADVERS.
# Of a server that logs responses alone, it shows no latency ever.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install dnstap-receiver==4.7.0 dnstap-pb==0.11.3 fstrm==0.6.2 dnspython==2.9.2
cat >settings.yaml <<YAML
web-api: {enable: false}
input: {unix-socket: {enable: true, path: $FOLDER/receiver}}
output: {stdout: {enable: true, format: json}}
YAML
cat >send.py <<'PY'
import socket
import dns.message, dns.rcode, fstrm
from dnstap_pb.dnstap_pb2 import Dnstap

query = dns.message.make_query("a.example", "A", id=1)
bad_version = dns.message.make_response(query)
bad_version.set_rcode(dns.rcode.BADVERS)
asked = dict(socket_family=2, socket_protocol=2, query_address=bytes(15) + b"\1", query_port=5353)
answered = dict(asked, query_time_sec=100, response_time_sec=103, response_message=dns.message.make_response(query).to_wire())
messages = [
    (6, answered),
    (5, dict(asked, query_time_sec=100, query_message=query.to_wire())),
    (6, answered),
    (6, dict(response_time_sec=103, response_message=bad_version.to_wire())),
]
codec = fstrm.FstrmCodec()
receiver = socket.socket(socket.AF_UNIX)
receiver.connect("receiver")
receiver.sendall(codec.encode_ctrlready(b"protobuf:dnstap.Dnstap"))
receiver.recv(64)
receiver.sendall(codec.encode_ctrlstart(b"protobuf:dnstap.Dnstap"))
for kind, fields in messages:
    found = Dnstap()
    found.type = 1
    found.message.type = kind
    for name, value in fields.items():
        setattr(found.message, name, value)
    receiver.sendall(codec.encode_data(found.SerializeToString()))
receiver.sendall(codec.encode(fstrm.FSTRM_CONTROL_STOP))
receiver.recv(64)
PY
v/bin/dnstap_receiver -c settings.yaml >log 2>&1 &
server=$!
trap 'kill $server; wait; rm -rf "$FOLDER"' EXIT
until [[ -S receiver ]]; do sleep 0.1; done
v/bin/python send.py
until [[ $(grep -c latency log) == 4 ]]; do sleep 0.1; done
found() {
    grep latency log | sed -n "$1p" | v/bin/python -c '
import json, sys
found = json.load(sys.stdin)
print(*(found[name] for name in sys.argv[1:]))' "${@:2}"
}
seen 'a response that names both times' - "$(found 1 latency)"
seen 'the same, once its query was seen' 3.0 "$(found 3 latency)"
seen 'its socket' 'INET6 TCP' "$(found 3 family protocol)"
seen 'no socket named' 'INET UDP' "$(found 4 family protocol)"
seen BADVERS NOERROR "$(found 4 rcode)"
