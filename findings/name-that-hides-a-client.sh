#!/usr/bin/env bash
# Forwarded: for="_a.b:_c";host="a.example:80"
#
# RFC 7239, section 6.3: a name that hides a client begins with _, and has letters, digits, dots, hyphens and _; section 6 allows such a
# name for the port, and a port behind "unknown" as well. Section 4: any value may stand in quotes, which are no part of it, and a pair may
# be missing before or behind a semicolon.
# Guess: the two libraries for this field in Rust read all of that.
# Seen: rfc7239 0.1.3 refuses a hyphen in a name, a name for a port, and a semicolon at the end, and leaves quotes around a host.
# forwarded-header-value 0.1.1 refuses "unknown:80", and gives the name with its port for the name.
# A proxy that hides its clients is cut off from a server with the first, and one that states the port of a host changes it.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

mkdir src
cat >Cargo.toml <<'TOML'
[package]
name = "finding"
version = "1.0.0"
edition = "2024"
[dependencies]
rfc7239 = "=0.1.3"
forwarded-header-value = "=0.1.1"
TOML
cat >src/main.rs <<'RUST'
use forwarded_header_value::ForwardedHeaderValue;

fn main() {
    for text in std::env::args().skip(1) {
        let first = match rfc7239::parse(&text).next().unwrap() {
            Ok(node) => format!("{:?} {:?}", node.forwarded_for.map(|name| name.to_string()), node.host),
            Err(error) => error.to_string(),
        };
        let second = match ForwardedHeaderValue::from_forwarded(&text) {
            Ok(value) => {
                let node = value.iter().next().unwrap();
                format!("{:?} {:?}", node.forwarded_for, node.forwarded_host)
            }
            Err(error) => format!("{error:?}"),
        };
        println!("{first} | {second}");
    }
}
RUST
CARGO_TARGET_DIR=$FOLDER/target cargo build --quiet
# each COMMAND CASE EXPECTED...: COMMAND runs once, with all cases, and prints a line for each
each() {
    local command cases=() expected=() found i
    read -ra command <<<"$1"
    shift
    while (($#)); do
        cases+=("$1")
        expected+=("$2")
        shift 2
    done
    mapfile -t found < <("${command[@]}" "${cases[@]}")
    for i in "${!cases[@]}"; do seen "${command[*]:1} ${cases[i]}" "${expected[i]}" "${found[i]-}"; done
}
each target/debug/finding \
    'for=192.0.2.1;host=a.example' 'Some("192.0.2.1") Some("a.example") | Some(IpAddr(192.0.2.1)) Some("a.example")' \
    'for=_hidden' 'Some("_hidden") None | Some(String("_hidden")) None' \
    'for="_a.b"' 'Some("_a.b") None | Some(String("_a.b")) None' \
    'for="_a-b"' 'Invalid node identifier | Some(String("_a-b")) None' \
    'for="_a:_c"' 'Invalid node port | Some(String("_a:_c")) None' \
    'for="unknown:80"' 'Some("unknown:80") None | InvalidObfuscatedNode("unknown:80")' \
    'host="a.example:80"' 'None Some("\"a.example:80\"") | None Some("a.example:80")' \
    'for=192.0.2.1;' "Parameter doesn't consist of key value pair | Some(IpAddr(192.0.2.1)) None"
