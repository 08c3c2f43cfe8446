#!/usr/bin/env bash
# the filter `icmp`, in another compiler than that of libpcap
#
# pcap-filter(7): `icmp` is for packets of IPv4 with the protocol 1; `portrange 80-90` for ports; `!` and `not` are the
# same.
# Guess: a compiler of such filters makes programs that choose the packets that libpcap chooses, or gives an error.
# Seen: github.com/packetcap/go-pcap 8c87ecf5dbc5 (Go) makes of `icmp`, `icmp6` and `portrange 80-90` a program that
# chooses every packet. `! tcp` chooses the packets of TCP, and `tcp and not port 443` those of UDP, too. For `tcp`,
# `not tcp` and `tcp port 80` it chooses what libpcap 1.10.3 does.
# A capture by this library holds what nobody asked for.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

debian_install tcpdump=4.99.3-1 libpcap0.8=1.10.3-1
cat >go.mod <<'GO'
module finding
go 1.26
require (
	github.com/packetcap/go-pcap v0.0.0-20240528124601-8c87ecf5dbc5
	golang.org/x/net v0.62.0
)
GO
cat >main.go <<'GO'
package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/packetcap/go-pcap/filter"
	"golang.org/x/net/bpf"
)

// packet from 192.0.2.1 to 198.51.100.2, without options
func packet(protocol byte, port byte) []byte {
	ethernet := []byte{0, 0, 0x5e, 0, 0x53, 1, 0, 0, 0x5e, 0, 0x53, 2, 8, 0}
	ip := []byte{0x45, 0, 0, 40, 0, 0, 0, 0, 64, protocol, 0, 0, 192, 0, 2, 1, 198, 51, 100, 2}
	rest := append([]byte{200, 0, 0, port}, make([]byte, 16)...)
	return append(append(ethernet, ip...), rest...)
}

func ofLibpcap(expression string) []bpf.Instruction {
	output, err := exec.Command("tcpdump", "-y", "EN10MB", "-ddd", expression).Output()
	if err != nil {
		panic(err)
	}
	var program []bpf.RawInstruction
	for _, line := range strings.Split(strings.TrimSpace(string(output)), "\n")[1:] {
		var one bpf.RawInstruction
		fmt.Sscan(line, &one.Op, &one.Jt, &one.Jf, &one.K)
		program = append(program, one)
	}
	read, _ := bpf.Disassemble(program)
	return read
}

func main() {
	program := ofLibpcap(os.Args[2])
	if os.Args[1] == "go-pcap" {
		var err error
		if program, err = filter.NewExpression(os.Args[2]).Compile().Compile(); err != nil {
			fmt.Println(err)
			return
		}
	}
	machine, err := bpf.NewVM(program)
	if err != nil {
		panic(err)
	}
	found := []string{}
	for _, one := range []struct {
		name     string
		protocol byte
		port     byte
	}{{"icmp", 1, 0}, {"tcp-80", 6, 80}, {"udp-53", 17, 53}} {
		if size, _ := machine.Run(packet(one.protocol, one.port)); size > 0 {
			found = append(found, one.name)
		}
	}
	fmt.Println(strings.Join(found, " "))
}
GO
go mod tidy 2>/dev/null
go build -o choose .
PATH=$FOLDER/root/usr/bin:$PATH
# choose EXPRESSION OF_LIBPCAP OF_GO_PCAP
choose() {
    seen "libpcap: $1" "$2" "$(./choose libpcap "$1")"
    seen "go-pcap: $1" "$3" "$(./choose go-pcap "$1")"
}
choose 'tcp' tcp-80 tcp-80
choose 'not tcp' 'icmp udp-53' 'icmp udp-53'
choose 'tcp port 80' tcp-80 tcp-80
choose 'icmp' icmp 'icmp tcp-80 udp-53'
choose 'portrange 80-90' tcp-80 'icmp tcp-80 udp-53'
choose '! tcp' 'icmp udp-53' tcp-80
choose 'tcp and not port 443' tcp-80 'icmp tcp-80 udp-53'
