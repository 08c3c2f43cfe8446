#!/usr/bin/env bash
# 1M, as a duration
#
# systemd.time(7): M is a month, and m a minute. ISO 8601 tells the two apart by a T in front. No standard has the letter alone.
# Guess: parsers of durations agree with systemd, or refuse the capital.
# Seen: humantime 2.4.0 (Rust) gives a month, of 30.44 days. duration-str 0.21.0 (Rust), ms 2.1.3, parse-duration 2.1.9 (npm),
# pytimeparse 1.1.10 and humanfriendly 10.0 (Python) give a minute. durationpy 0.11 (Python) refuses it, as Go does.
# A lifetime of 1M in a file is 43834 times as long in one of two programs.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install pytimeparse==1.1.10 humanfriendly==10.0 durationpy==0.11
npm_install ms@2.1.3 parse-duration@2.1.9
mkdir src
cat >Cargo.toml <<'TOML'
[package]
name = "finding"
version = "1.0.0"
edition = "2024"
[dependencies]
duration-str = { version = "=0.21.0", default-features = false }
humantime = "=2.4.0"
TOML
cat >src/main.rs <<'RUST'
fn main() {
    let month = humantime::parse_duration("1M").unwrap();
    println!("{} {}", month.as_secs(), duration_str::parse("1M").unwrap().as_secs());
}
RUST
seen 'humantime and duration-str' '2630016 60' "$(CARGO_TARGET_DIR=$FOLDER/target cargo run --quiet)"
seen 'ms' 60000 "$(node -p 'require("ms")("1M")')"
seen 'parse-duration' 60000 "$(node -e 'import("parse-duration").then(library => console.log(library.default("1M")))')"
seen 'pytimeparse' 60 "$(v/bin/python -c 'import pytimeparse; print(pytimeparse.parse("1M"))')"
seen 'humanfriendly' 60.0 "$(v/bin/python -c 'import humanfriendly; print(humanfriendly.parse_timespan("1M"))')"
seen 'durationpy' refused "$(v/bin/python -c '
import durationpy
try:
    print(durationpy.from_str("1M"))
except durationpy.DurationError:
    print("refused")')"
