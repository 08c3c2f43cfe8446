#!/usr/bin/env bash
# 1MiB and 1MB
#
# IEC 80000-13: MiB is 2^20 bytes, and MB is 10^6.
# Guess: a library with two parsers, one for sizes of people and one for memory, reads MiB as 2^20 in both.
# Seen: github.com/docker/go-units 0.5.0 (Go) reads 1MiB as 1000000 by FromHumanSize, and 1MB as 1048576 by RAMInBytes: the
# function decides, and the i counts for nothing. github.com/dustin/go-humanize 1.1.0 (Go) tells them apart;
# github.com/inhies/go-bytesize of April 2022 (Go) refuses 1MiB, and reads 1MB as 1048576.
# A limit of 8GiB is 7 percent less than that, or 7 percent more than one of 8GB, by the program that reads it.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

cat >go.mod <<'GO'
module finding
go 1.26
require (
	github.com/docker/go-units v0.5.0
	github.com/dustin/go-humanize v1.1.0
	github.com/inhies/go-bytesize v0.0.0-20220417184213-4913239db9cf
)
GO
cat >main.go <<'GO'
package main

import (
	"fmt"
	"os"

	"github.com/docker/go-units"
	"github.com/dustin/go-humanize"
	"github.com/inhies/go-bytesize"
)

func main() {
	var size any
	var err error
	switch os.Args[1] {
	case "FromHumanSize":
		size, err = units.FromHumanSize(os.Args[2])
	case "RAMInBytes":
		size, err = units.RAMInBytes(os.Args[2])
	case "humanize":
		size, err = humanize.ParseBytes(os.Args[2])
	case "bytesize":
		var read bytesize.ByteSize
		read, err = bytesize.Parse(os.Args[2])
		size = uint64(read)
	}
	if err != nil {
		size = "refused"
	}
	fmt.Println(size)
}
GO
go mod tidy 2>/dev/null
go build -o parse .
seen 'go-units, FromHumanSize: 1MB' 1000000 "$(./parse FromHumanSize 1MB)"
seen 'go-units, FromHumanSize: 1MiB' 1000000 "$(./parse FromHumanSize 1MiB)"
seen 'go-units, RAMInBytes: 1MB' 1048576 "$(./parse RAMInBytes 1MB)"
seen 'go-units, RAMInBytes: 1MiB' 1048576 "$(./parse RAMInBytes 1MiB)"
seen 'go-humanize: 1MB' 1000000 "$(./parse humanize 1MB)"
seen 'go-humanize: 1MiB' 1048576 "$(./parse humanize 1MiB)"
seen 'go-bytesize: 1MB' 1048576 "$(./parse bytesize 1MB)"
seen 'go-bytesize: 1MiB' refused "$(./parse bytesize 1MiB)"
