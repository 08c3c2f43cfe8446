#!/usr/bin/env bash
# cat monday.tap tuesday.tap >week.tap
#
# Frame Streams, as dnstap uses it in files: a stream is START, frames, and STOP. Two files in a row are two streams in a row.
# Guess: a reader gives the messages of both, as readers of gzip do, or says that something follows.
# Seen: dnstap-ldns 0.2.1 and fstrm_dump 0.6.1 of Debian 12, and github.com/farsightsec/golang-framestream 0.3.0 (Go), on which
# dnstap of Go stands, end at the first STOP, with status 0. fstrm 0.6.2 (Python) reads on.
# Files of dnstap are joined by a program that knows the format; with cat all but the first of them are lost.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

debian_install dnstap-ldns=0.2.1-1 fstrm-bin=0.6.1-1 libfstrm0=0.6.1-1 libldns3 libprotobuf-c1 libevent-2.1-7
pip_install fstrm==0.6.2 dnstap-pb==0.11.3 dnspython==2.9.2
cat >write.py <<'PY'
import sys
import dns.message, fstrm
from dnstap_pb.dnstap_pb2 import Dnstap

codec = fstrm.FstrmCodec()
found = Dnstap()
found.type = 1
found.message.type = 5
found.message.query_message = dns.message.make_query(sys.argv[1], "A").to_wire()
sys.stdout.buffer.write(codec.encode_ctrlstart(b"protobuf:dnstap.Dnstap") + codec.encode_data(found.SerializeToString())
                        + codec.encode(fstrm.FSTRM_CONTROL_STOP))
PY
cat >read.py <<'PY'
import fstrm

codec = fstrm.FstrmCodec()
codec.append(open("week.tap", "rb").read())
count = 0
while codec.process():
    count += codec.decode()[0] == fstrm.FSTRM_DATA_FRAME
print(count)
PY
cat >go.mod <<'GO'
module finding
go 1.26
require github.com/farsightsec/golang-framestream v0.3.0
GO
cat >main.go <<'GO'
package main

import (
	"fmt"
	"os"

	framestream "github.com/farsightsec/golang-framestream"
)

func main() {
	file, _ := os.Open("week.tap")
	types := [][]byte{[]byte("protobuf:dnstap.Dnstap")}
	reader, err := framestream.NewReader(file, &framestream.ReaderOptions{ContentTypes: types})
	frame := make([]byte, 512)
	count := -1
	for err == nil {
		count++
		_, err = reader.ReadFrame(frame)
	}
	fmt.Println(count, err)
}
GO
go mod tidy 2>/dev/null
v/bin/python write.py a.example >monday.tap
v/bin/python write.py b.example >tuesday.tap
cat monday.tap tuesday.tap >week.tap
seen 'fstrm (Python)' 2 "$(v/bin/python read.py)"
seen fstrm_dump 1 "$(root/usr/bin/fstrm_dump week.tap /dev/null 2>&1 >/dev/null | grep -c '^Data frame')"
seen 'golang-framestream' '1 EOF' "$(go run .)"
seen 'dnstap-ldns: Monday' 1 "$(root/usr/bin/dnstap-ldns -q -r monday.tap | wc -l)"
seen 'dnstap-ldns: the week' 1 "$(root/usr/bin/dnstap-ldns -q -r week.tap | wc -l)"
