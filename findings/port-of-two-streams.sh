#!/usr/bin/env bash
# m=audio 5004/2 RTP/AVP 0
#
# RFC 8866, section 5.14: a number behind the port tells how many ports in a row there are. Section 5.9: there may be several "t=" lines.
# RFC 8445, section 5.1: a candidate may have extensions, each of a name and a value, such as "ufrag" and "network-cost" of WebRTC.
# Guess: libraries for SDP write a description again as they have read it.
# Seen: sdp-transform 3.0.0 (npm) writes "m=undefined NaN undefined", and keeps the last "t=" line of two. It drops the "ufrag" of a
# candidate and what follows, and writes "network-cost NaN" for "network-cost 10". github.com/pion/sdp/v3 3.0.18 (Go) writes all of
# them again.
# A relay that changes one line of an offer takes away others.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install sdp-transform@3.0.0
cat >go.mod <<'GO'
module finding
go 1.26
require github.com/pion/sdp/v3 v3.0.18
GO
cat >main.go <<'GO'
package main

import (
	"fmt"
	"io"
	"os"

	"github.com/pion/sdp/v3"
)

func main() {
	text, _ := io.ReadAll(os.Stdin)
	var description sdp.SessionDescription
	if err := description.Unmarshal(text); err != nil {
		fmt.Println(err)
		return
	}
	written, _ := description.Marshal()
	os.Stdout.Write(written)
}
GO
go mod tidy 2>/dev/null
go build -o write_go .
write_js() {
    node -e '
        const { parse, write } = require("sdp-transform");
        process.stdout.write(write(parse(require("fs").readFileSync(0, "utf8"))));'
}
# each GO JAVASCRIPT: standard input, written again
each() {
    local library text
    text=$(</dev/stdin)
    for library in ./write_go write_js; do
        seen "${library#*_}: ${text//$'\n'/ | }" "$1" "$(printf 'v=0\no=- 1 1 IN IP4 192.0.2.1\ns=-\n%s\n' "$text" \
            | sed 's/$/\r/' | $library | tr -d '\r' | sed 1,3d | paste -sd '|')"
        shift
    done
}
AUDIO='m=audio 5004 RTP/AVP 0' CANDIDATE='a=candidate:1 1 UDP 1 192.0.2.1 5 typ host'
each "t=1 2|$AUDIO" "t=1 2|$AUDIO" <<<"t=1 2"$'\n'"$AUDIO"
each 't=1 2|m=audio 5004/2 RTP/AVP 0' 't=1 2|m=undefined NaN undefined ' <<<$'t=1 2\nm=audio 5004/2 RTP/AVP 0'
each 't=1 2|t=3 4' 't=3 4' <<<$'t=1 2\nt=3 4'
each "t=1 2|$AUDIO|$CANDIDATE ufrag a" "t=1 2|$AUDIO|$CANDIDATE" <<<"t=1 2"$'\n'"$AUDIO"$'\n'"$CANDIDATE ufrag a"
each "t=1 2|$AUDIO|$CANDIDATE network-cost 10" "t=1 2|$AUDIO|$CANDIDATE network-cost NaN" \
    <<<"t=1 2"$'\n'"$AUDIO"$'\n'"$CANDIDATE network-cost 10"
