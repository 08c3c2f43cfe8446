#!/usr/bin/env bash
# Last-Modified: Sat, 31 Dec 2016 23:59:60 GMT
#
# RFC 9110, section 5.6.7: the time of a day goes to 23:59:60, a leap second; this was the last one.
# Guess: readers of dates give the second before or the one behind, or refuse it.
# Seen: strtotime of PHP 8.2 gives 7 January 2017, a week later, and Date of Node 20 gives 23:59:00, a minute earlier, both
# without an error. http.cookiejar of Python 3.11 gives midnight. http.ParseTime of Go 1.26, Java 17, werkzeug 3.1.9, aiohttp
# 3.14.5 (Python) and httpdate 1.0.3 (Rust) refuse it.
# A file of that second is modified in the future, for a copy that is a week old.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

DATE='Sat, 31 Dec 2016 23:59:60 GMT'
export DATE
debian_install php8.2-cli libxml2 libicu72 libsodium23 libargon2-1 libedit2
pip_install werkzeug==3.1.9 aiohttp==3.14.5
utc() {
    date --utc --date "@$1" '+%F %T'
}
# shellcheck disable=SC2016 # PHP, with its own variables
seen 'PHP' '2017-01-07 00:00:00' "$(utc "$(root/usr/bin/php8.2 -n -r 'echo strtotime($_SERVER["DATE"]);')")"
seen 'Node' '2016-12-31 23:59:00' "$(utc "$(node -p 'new Date(process.env.DATE).getTime() / 1000')")"
seen 'http.cookiejar' '2017-01-01 00:00:00' "$(utc "$(python3 -c '
import http.cookiejar, os
print(http.cookiejar.http2time(os.environ["DATE"]))')")"
seen 'werkzeug' None "$(v/bin/python -c '
import os, werkzeug.http
print(werkzeug.http.parse_date(os.environ["DATE"]))')"
seen 'aiohttp' None "$(v/bin/python -c '
import aiohttp.helpers, os
print(aiohttp.helpers.parse_http_date(os.environ["DATE"]))')"

cat >main.go <<'GO'
package main

import (
	"fmt"
	"net/http"
	"os"
)

func main() {
	_, err := http.ParseTime(os.Getenv("DATE"))
	fmt.Println(err != nil)
}
GO
seen 'Go: refused' true "$(go run main.go)"
cat >Read.java <<'JAVA'
import java.time.DateTimeException;
import java.time.ZonedDateTime;
import java.time.format.DateTimeFormatter;

public class Read {
    public static void main(String[] words) {
        try {
            System.out.println(ZonedDateTime.parse(System.getenv("DATE"), DateTimeFormatter.RFC_1123_DATE_TIME));
        } catch (DateTimeException error) {
            System.out.println(true);
        }
    }
}
JAVA
seen 'Java: refused' true "$(java Read.java)"
mkdir src
cat >Cargo.toml <<'TOML'
[package]
name = "finding"
version = "1.0.0"
edition = "2024"
[dependencies]
httpdate = "=1.0.3"
TOML
cat >src/main.rs <<'RUST'
fn main() {
    println!("{}", httpdate::parse_http_date(&std::env::var("DATE").unwrap()).is_err());
}
RUST
seen 'httpdate: refused' true "$(CARGO_TARGET_DIR=$FOLDER/target cargo run --quiet)"
