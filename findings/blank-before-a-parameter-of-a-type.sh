#!/usr/bin/env bash
# Content-Type: text/html ; charset=utf-8
#
# RFC 9110, section 5.6.6: blanks may stand before and behind a semicolon, a parameter may be missing there, and a value within quotes
# may be empty, or have an escaped quote.
# Guess: parsers of media types for HTTP read all of these.
# Seen: mime 0.3.17 (Rust) refuses each, and takes a semicolon at the end alone. mediatype 0.23.0 (Rust) refuses the missing parameter
# between two others. werkzeug 3.1.8 (Python) reads all.
# A framework that asks mime for the type takes such a request for one without a type.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

mkdir src
cat >Cargo.toml <<'TOML'
[package]
name = "finding"
version = "1.0.0"
edition = "2024"
[dependencies]
mime = "=0.3.17"
mediatype = "=0.23.0"
TOML
cat >src/main.rs <<'RUST'
use mediatype::{MediaType, ReadParams};

fn main() {
    let text = std::env::args().nth(1).unwrap();
    let mime = text.parse::<mime::Mime>().map(|found| found.params().map(|(name, value)| format!("{name}={value}")).collect());
    let media = MediaType::parse(&text);
    let media = media.map(|found| found.params().map(|(name, value)| format!("{name}={}", value.unquoted_str())).collect());
    for found in [mime.map_err(drop), media.map_err(drop)] {
        println!("{}", found.map_or("refused".into(), |parameters: Vec<_>| parameters.join(" ")));
    }
}
RUST
CARGO_TARGET_DIR=$FOLDER/target cargo build --quiet
pip_install werkzeug==3.1.8
# all TEXT MIME MEDIATYPE WERKZEUG: the parameters
all() {
    target/debug/finding "$1" >found
    seen "mime: $1" "$2" "$(sed -n 1p found)"
    seen "mediatype: $1" "$3" "$(sed -n 2p found)"
    seen "werkzeug: $1" "$4" "$(v/bin/python -c '
import sys, werkzeug.http
print(*(f"{name}={value}" for name, value in werkzeug.http.parse_options_header(sys.argv[1])[1].items()))' "$1")"
}
all 'text/html; charset=utf-8' charset=utf-8 charset=utf-8 charset=utf-8
all 'text/html; charset=utf-8;' charset=utf-8 charset=utf-8 charset=utf-8
all 'text/html ; charset=utf-8' refused charset=utf-8 charset=utf-8
all 'text/html;; charset=utf-8' refused refused charset=utf-8
all 'text/html; a=""; charset=utf-8' refused 'a= charset=utf-8' 'a= charset=utf-8'
all 'text/html; a="b\"c"; charset=utf-8' refused 'a=b"c charset=utf-8' 'a=b"c charset=utf-8'
