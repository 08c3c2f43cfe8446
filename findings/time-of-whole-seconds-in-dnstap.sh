#!/usr/bin/env bash
# query_time_sec: 1700000000, and no query_time_nsec, in a message of dnstap
#
# dnstap.proto: the seconds and the nanoseconds of a time are two fields, each of them optional.
# Guess: a tool that shows the time shows the seconds, where there is no fraction.
# Seen: dnstap-ldns 0.2.1 of Debian 12 shows no time at all, `??:??:??.??????`, not even the date, for such a message.
# github.com/dnstap/golang-dnstap 0.4.0 (Go) shows 22:13:20.?????? in its short form, and no time in JSON. For a query over HTTPS
# (DOH), dnstap-ldns shows ? in place of the protocol.
# A writer that leaves a fraction of zero out, as version 3 of protocol buffers does, has no time in the first, nor in JSON of Go.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

debian_install dnstap-ldns=0.2.1-1 libfstrm0=0.6.1-1 libldns3 libprotobuf-c1
pip_install fstrm==0.6.2 dnstap-pb==0.11.3 dnspython==2.9.2
cat >write.py <<'PY'
import sys
import dns.message, fstrm
from dnstap_pb.dnstap_pb2 import Dnstap

codec = fstrm.FstrmCodec()
sys.stdout.buffer.write(codec.encode_ctrlstart(b"protobuf:dnstap.Dnstap"))
for nanoseconds, protocol in (0, 1), (None, 1), (0, 4):
    found = Dnstap()
    found.type = 1
    message = found.message
    message.type = 5
    message.socket_family = 1
    message.socket_protocol = protocol
    message.query_address = bytes([192, 0, 2, 1])
    message.query_time_sec = 1700000000
    if nanoseconds is not None:
        message.query_time_nsec = nanoseconds
    message.query_message = dns.message.make_query("a.example", "A").to_wire()
    sys.stdout.buffer.write(codec.encode_data(found.SerializeToString()))
sys.stdout.buffer.write(codec.encode(fstrm.FSTRM_CONTROL_STOP))
PY
cat >go.mod <<'GO'
module finding
go 1.26
require (
	github.com/dnstap/golang-dnstap v0.4.0
	github.com/farsightsec/golang-framestream v0.3.0
)
GO
cat >main.go <<'GO'
package main

import (
	"encoding/json"
	"fmt"
	"os"

	dnstap "github.com/dnstap/golang-dnstap"
	framestream "github.com/farsightsec/golang-framestream"
	"google.golang.org/protobuf/proto"
)

func main() {
	file, _ := os.Open("a.tap")
	types := [][]byte{dnstap.FSContentType}
	reader, _ := framestream.NewReader(file, &framestream.ReaderOptions{ContentTypes: types})
	frame := make([]byte, 512)
	for {
		size, err := reader.ReadFrame(frame)
		if err != nil {
			return
		}
		var found dnstap.Dnstap
		proto.Unmarshal(frame[:size], &found)
		short, _ := dnstap.TextFormat(&found)
		text, _ := dnstap.JSONFormat(&found)
		var fields struct{ Message map[string]any }
		json.Unmarshal(text, &fields)
		fmt.Println(string(short[:15]), fields.Message["query_time"])
	}
}
GO
go mod tidy 2>/dev/null
v/bin/python write.py >a.tap
root/usr/bin/dnstap-ldns -q -r a.tap | sed 's/ 37b.*//; s/ 27b.*//' >ldns.log
go run . >go.log
seen 'dnstap-ldns: nanoseconds of 0' '2023-11-14 22:13:20.000000 CQ 192.0.2.1 UDP' "$(sed -n 1p ldns.log)"
seen 'dnstap-ldns: none at all' '??:??:??.?????? CQ 192.0.2.1 UDP' "$(sed -n 2p ldns.log)"
seen 'dnstap-ldns: over HTTPS' '2023-11-14 22:13:20.000000 CQ 192.0.2.1 ?' "$(sed -n 3p ldns.log)"
seen 'golang-dnstap: nanoseconds of 0' '22:13:20.000000 2023-11-14T22:13:20Z' "$(sed -n 1p go.log)"
seen 'golang-dnstap: none at all' '22:13:20.?????? <nil>' "$(sed -n 2p go.log)"
