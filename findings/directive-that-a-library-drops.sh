#!/usr/bin/env bash
# Cache-Control: no-cache="set-cookie", max-age=60, stale-while-revalidate=30
#
# RFC 9111, section 5.2: a proxy passes on directives whether it knows them or not; section 5.2.2.4: no-cache with names means that
# these fields need a question first.
# Guess: a typed field that is read and written again has the same directives, or keeps the text of those that it does not know.
# Seen: headers 0.4.2 (Rust) writes "max-age=60". It drops no-cache with a name, stale-while-revalidate and each directive that it does
# not know. It refuses the whole field for max-age=99999999999999999999, which section 1.2.2 takes for the greatest.
# An answer that went through a program with this library says less than its author wrote.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

mkdir src
cat >Cargo.toml <<'TOML'
[package]
name = "finding"
version = "1.0.0"
edition = "2024"
[dependencies]
headers = "=0.4.2"
http = "1"
TOML
cat >src/main.rs <<'RUST'
use headers::{CacheControl, HeaderMap, HeaderMapExt, HeaderValue};

fn main() {
    let field = HeaderValue::from_str(&std::env::args().nth(1).unwrap()).unwrap();
    let mut fields = HeaderMap::new();
    fields.insert("cache-control", field);
    match fields.typed_try_get::<CacheControl>() {
        Ok(directives) => {
            fields.typed_insert(directives.unwrap());
            println!("{}", fields["cache-control"].to_str().unwrap());
        }
        Err(error) => println!("{error}"),
    }
}
RUST
CARGO_TARGET_DIR=$FOLDER/target cargo build --quiet
again() {
    seen "$1" "$2" "$(target/debug/finding "$1")"
}
again 'no-cache, max-age=60' 'no-cache, max-age=60'
again 'no-cache="set-cookie", max-age=60' 'max-age=60'
again 'max-age=60, stale-while-revalidate=30' 'max-age=60'
again 'max-age=60, stale-if-error=30, x=1' 'max-age=60'
again 'max-age=18446744073709551615' 'max-age=18446744073709551615'
again 'max-age=99999999999999999999' 'invalid HTTP header'
