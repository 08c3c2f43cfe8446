#!/usr/bin/env bash
# TZ=CET-1CEST,M3.5.0,M10.5.0/3
#
# POSIX, Base Definitions, section 8.3: TZ may state the offset, and the days on which summer begins and ends, as it must on systems
# without a database of zones. This one is the time of Berlin.
# Guess: each runtime that obeys TZ=Europe/Berlin understands it, or says that it does not.
# Seen: at 00:00 UTC on 1 July 2025 date and Python 3.11 say 02:00. Java 17 says 01:00, as if no summer were stated, and Node 20 and
# Go 1.26 say 00:00, without a word. Java reads an offset alone, <+0330>-3:30, and Node and Go do not.
# The logs of one machine are an hour apart, or two.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

RULES=CET-1CEST,M3.5.0,M10.5.0/3 OFFSET='<+0330>-3:30'
cat >go.mod <<'GO'
module finding
go 1.26
GO
cat >main.go <<'GO'
package main

import (
	"fmt"
	"time"
)

func main() {
	fmt.Println(time.Unix(1751328000, 0).Format("15:04"))
}
GO
go build -o clock .
cat >Clock.java <<'JAVA'
import java.time.*;
class Clock {
    public static void main(String[] arguments) {
        System.out.println(Instant.ofEpochSecond(1751328000).atZone(ZoneId.systemDefault()).toLocalTime());
    }
}
JAVA
clock() {
    case $1 in
        date) TZ=$2 date -d @1751328000 +%R ;;
        python) TZ=$2 python3 -c 'import time; print(time.strftime("%H:%M", time.localtime(1751328000)))' ;;
        java) TZ=$2 java Clock.java ;;
        node) TZ=$2 node -p 'new Date(1751328000000).toTimeString().slice(0, 5)' ;;
        go) TZ=$2 ./clock ;;
    esac
}
for runtime in date python java node go; do
    seen "$runtime: Europe/Berlin" 02:00 "$(clock $runtime Europe/Berlin)"
done
for runtime in date python; do
    seen "$runtime: $RULES" 02:00 "$(clock $runtime $RULES)"
done
for runtime in date python java; do
    seen "$runtime: $OFFSET" 03:30 "$(clock $runtime "$OFFSET")"
done
seen "java: $RULES" 01:00 "$(clock java $RULES)"
for runtime in node go; do
    seen "$runtime: $RULES" 00:00 "$(clock $runtime $RULES)"
    seen "$runtime: $OFFSET" 00:00 "$(clock $runtime "$OFFSET")"
done
