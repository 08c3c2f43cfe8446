#!/usr/bin/env bash
# Last-Modified: Tue, 3 Jun 2008 11:05:30 GMT
#
# RFC 9110, section 5.6.7: the day of a month has two digits in the one form that senders may use.
# Guess: a formatter of a large library that is named after this form writes `03`.
# Seen: DateTimeFormatter.RFC_1123_DATE_TIME of Java writes `3`; RFC 1123 allowed both for mail. http.ParseTime of Go
# 1.26 does not read that. So If-Modified-Since, Expires and the lifetime guessed from Last-Modified fail between the
# two for the first nine days of each month.
# A cache that is strict about dates has to take Expires in this form for "already expired" (RFC 9111, section 5.3).
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

cat >Day.java <<'JAVA'
import java.time.ZoneOffset;
import java.time.ZonedDateTime;
import java.time.format.DateTimeFormatter;

public class Day {
    public static void main(String[] days) {
        var date = ZonedDateTime.of(2008, 6, Integer.parseInt(days[0]), 11, 5, 30, 0, ZoneOffset.UTC);
        System.out.println(DateTimeFormatter.RFC_1123_DATE_TIME.format(date));
    }
}
JAVA
cat >go.mod <<'GO'
module finding
go 1.26
GO
cat >main.go <<'GO'
package main

import (
	"fmt"
	"net/http"
	"os"
)

func main() {
	date, err := http.ParseTime(os.Args[1])
	fmt.Println(date.Year(), err == nil)
}
GO
go build -o parse .
tenth=$(java Day.java 10)
third=$(java Day.java 3)
seen 'Java: the tenth' 'Tue, 10 Jun 2008 11:05:30 GMT' "$tenth"
seen 'Go, of that' '2008 true' "$(./parse "$tenth")"
seen 'Java: the third' 'Tue, 3 Jun 2008 11:05:30 GMT' "$third"
seen 'Go, of that' '1 false' "$(./parse "$third")"
