#!/usr/bin/env bash
# Expires: Friday, 06-Nov-37 08:49:37 GMT
#
# RFC 9110, section 5.6.7: a recipient must read the two old forms of dates, too. RFC 9111, section 1.2.2: a lifetime that is too great
# for a cache means the greatest that it knows.
# Guess: libraries for caches find this answer fresh, as they do with the same time in the form of today, and any great max-age.
# Seen: http-cache-semantics 3.0.0 (Rust) finds it stale at once, and with the date of asctime, and max-age=99999999999999999999. The
# library of the same name and version 4.3.0 (npm), from which it was made, finds all fresh.
# Each request goes to the server, and no error says why.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install http-cache-semantics@4.3.0
mkdir src
cat >Cargo.toml <<'TOML'
[package]
name = "finding"
version = "1.0.0"
edition = "2024"
[dependencies]
http = "1"
http-cache-semantics = "=3.0.0"
TOML
cat >src/main.rs <<'RUST'
use std::time::{Duration, SystemTime};

fn main() {
    let [name, value] = [1, 2].map(|at| std::env::args().nth(at).unwrap());
    let request = http::Request::get("http://a.example/").body(()).unwrap();
    let answer = http::Response::builder().header(name, value).body(()).unwrap();
    let policy = http_cache_semantics::CachePolicy::new(&request, &answer);
    let later = SystemTime::now() + Duration::from_secs(1);
    println!("{}", if policy.is_stale(later) { "stale" } else { "fresh" });
}
RUST
CARGO_TARGET_DIR=$FOLDER/target cargo build --quiet
fresh_js() {
    node -e '
        const CachePolicy = require("http-cache-semantics");
        const [name, value] = process.argv.slice(1);
        const policy = new CachePolicy({ headers: {} }, { status: 200, headers: { [name]: value } });
        console.log(policy.stale() ? "stale" : "fresh");' "$1" "$2"
}
# both WHAT NAME VALUE RUST
both() {
    seen "npm: $1" fresh "$(fresh_js "$2" "$3")"
    seen "Rust: $1" "$4" "$(target/debug/finding "$2" "$3")"
}
both 'the form of today' expires 'Fri, 06 Nov 2037 08:49:37 GMT' fresh
both 'the form of RFC 850' expires 'Friday, 06-Nov-37 08:49:37 GMT' stale
both 'the form of asctime' expires 'Fri Nov  6 08:49:37 2037' stale
both 'a year' cache-control max-age=31536000 fresh
both 'twenty digits' cache-control max-age=99999999999999999999 stale
