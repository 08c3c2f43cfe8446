#!/usr/bin/env bash
# h HTTPS 1 . alpn=h2,h3
#
# RFC 9460, section 2.1 and appendix A.1: the value of alpn is a list with commas between its items, and none of them is empty. RFC
# 1035, section 5.1: \DDD within a text is the octet with this decimal number.
# Guess: a library that reads a zone file writes its records in the form that it and others read.
# Seen: hickory-proto 0.26.3 (Rust) writes "alpn=h2,h3,", a comma behind ipv4hint and behind values of unknown keys, the quotes in a CAA
# record without backslashes, and HINFO without quotes. dnspython 2.9.2 (Python) refuses all of these. Of \065 within quotes, which is
# A, hickory-proto makes U+0605.
# A tool that shows what hickory has shows records that no name server takes.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install dnspython==2.9.2
mkdir src
cat >Cargo.toml <<'TOML'
[package]
name = "finding"
version = "1.0.0"
edition = "2024"
[dependencies]
hickory-proto = { version = "=0.26.3", default-features = false, features = ["std"] }
TOML
cat >src/main.rs <<'RUST'
use hickory_proto::{rr::{Name, RData}, serialize::txt::Parser};

fn main() {
    let zone = format!("$TTL 60\n@ SOA a. b. 1 2 3 4 5\nh {}\n", std::env::args().nth(1).unwrap());
    let (_, sets) = Parser::new(zone, None, Some(Name::from_ascii("example.").unwrap())).parse().unwrap();
    for record in sets.values().flat_map(|set| set.records_without_rrsigs()) {
        match &record.data {
            RData::SOA(_) => {}
            RData::TXT(text) => println!("{}", String::from_utf8_lossy(&text.txt_data.concat())),
            data => println!("{data}"),
        }
    }
}
RUST
CARGO_TARGET_DIR=$FOLDER/target cargo build --quiet
read_python() {
    v/bin/python -c '
import dns.exception, dns.rdata, sys
try:
    print(dns.rdata.from_text("IN", *sys.argv[1].split(" ", 1)))
except dns.exception.DNSException:
    print("refused")' "$1"
}
# both TYPE VALUE WRITTEN AGAIN: what hickory-proto writes, and how dnspython reads that
both() {
    seen "dnspython: $1 $2" "$2" "$(read_python "$1 $2")"
    seen "hickory-proto: $1 $2" "$3" "$(target/debug/finding "$1 $2")"
    seen 'dnspython, of this' "$4" "$(read_python "$1 $3")"
}
both CAA '0 issue "a.example"' '0 issue "a.example"' '0 issue "a.example"'
both CAA '0 issue "a.example; x=\"y\""' '0 issue "a.example; x="y""' refused
both HTTPS '1 . alpn="h2,h3"' '1 . alpn=h2,h3,' refused
both HTTPS '1 . ipv4hint="192.0.2.1"' '1 . ipv4hint=192.0.2.1,' refused
both HTTPS '1 . key65000="ab"' '1 . key65000="ab",' refused
both HINFO '"a b" "c"' 'a b c' refused
seen 'dnspython: TXT "a\065b\"c"' '"aAb\"c"' "$(read_python 'TXT "a\065b\"c"')"
seen 'hickory-proto: TXT "a\065b\"c"' $'a\xd8\x85b"c' "$(target/debug/finding 'TXT "a\065b\"c"')"
