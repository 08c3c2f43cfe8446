#!/usr/bin/env bash
# framestream.NewReader(file, &framestream.ReaderOptions{}), for a file of dnstap
#
# Its documentation: the types of content that a reader takes may be left unset, for no negotiation. A file of dnstap names its type
# in the frame START.
# Guess: such a reader takes a stream of any type, as fstrm_dump does.
# Seen: github.com/farsightsec/golang-framestream 0.3.0 (Go) refuses each stream that names a type, and takes one without; a reader
# that wants the type takes both. fstrm_dump 0.6.1 of Debian 12 shows both.
# A program in Go that is to show any such file needs to know the type beforehand.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

debian_install fstrm-bin=0.6.1-1 libfstrm0=0.6.1-1 libevent-2.1-7
pip_install fstrm==0.6.2
v/bin/python -c '
import fstrm
for name, types in ("typed", [b"protobuf:dnstap.Dnstap"]), ("untyped", []):
    codec = fstrm.FstrmCodec()
    with open(name, "wb") as file:
        file.write(codec.encode(fstrm.FSTRM_CONTROL_START, types) + codec.encode_data(b"frame")
                   + codec.encode(fstrm.FSTRM_CONTROL_STOP))'
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
	file, _ := os.Open(os.Args[1])
	var options framestream.ReaderOptions
	for _, wanted := range os.Args[2:] {
		options.ContentTypes = append(options.ContentTypes, []byte(wanted))
	}
	reader, err := framestream.NewReader(file, &options)
	if err != nil {
		fmt.Println(err)
		return
	}
	frame := make([]byte, 16)
	size, err := reader.ReadFrame(frame)
	fmt.Println(string(frame[:size]), err)
}
GO
go mod tidy 2>/dev/null
go build -o read .
seen 'golang-framestream: unset, untyped' 'frame <nil>' "$(./read untyped)"
seen 'golang-framestream: unset, typed' 'content type mismatch' "$(./read typed)"
seen 'golang-framestream: set, untyped' 'frame <nil>' "$(./read untyped protobuf:dnstap.Dnstap)"
seen 'golang-framestream: set, typed' 'frame <nil>' "$(./read typed protobuf:dnstap.Dnstap)"
for file in untyped typed; do
    seen "fstrm_dump: $file" 1 "$(root/usr/bin/fstrm_dump $file /dev/null 2>&1 >/dev/null | grep -c '^Data frame')"
done
