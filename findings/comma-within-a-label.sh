#!/usr/bin/env bash
# requests{accept="text/html, q=0.5"} 1
#
# Prometheus, "Text-based format": the value of a label is any text within quotes, with \\, \" and \n for three characters; a name
# of a metric may have colons; blanks may stand between the parts of a line.
# Guess: a parser of this format gives one label with this value.
# Seen: prometheus-parse 0.2.5 (Rust) gives two labels, accept with "text/html", and " q". It leaves escapes as they are, and drops a
# line with } in a value, with a colon in the name, or with blanks around the labels, without an error. prometheus-client 0.26.0
# (Python) reads all of them.
# Fields of requests as labels have commas, and recording rules make names with colons.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install prometheus-client==0.26.0
mkdir src
cat >Cargo.toml <<'TOML'
[package]
name = "finding"
version = "1.0.0"
edition = "2024"
[dependencies]
prometheus-parse = "=0.2.5"
TOML
cat >src/main.rs <<'RUST'
fn main() {
    let line = std::env::args().nth(1).unwrap();
    let scrape = prometheus_parse::Scrape::parse([Ok(line)].into_iter()).unwrap();
    for sample in &scrape.samples {
        let mut labels: Vec<_> = sample.labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
        labels.sort();
        println!("{} {}", sample.metric, labels.join(" | "));
    }
    if scrape.samples.is_empty() {
        println!("nothing");
    }
}
RUST
CARGO_TARGET_DIR=$FOLDER/target cargo build --quiet
read_python() {
    v/bin/python -c '
import sys
from prometheus_client.parser import text_string_to_metric_families
for family in text_string_to_metric_families(sys.argv[1] + "\n"):
    for sample in family.samples:
        print(sample.name, " | ".join(f"{name}={value}" for name, value in sorted(sample.labels.items())))' "$1"
}
# both WHAT LINE PYTHON RUST
both() {
    seen "prometheus-client: $1" "$3" "$(read_python "$2")"
    seen "prometheus-parse: $1" "$4" "$(target/debug/finding "$2")"
}
both plain 'a{b="c"} 1' 'a b=c' 'a b=c'
both 'a comma' 'a{accept="text/html, q=0.5"} 1' 'a accept=text/html, q=0.5' 'a  q=0.5 | accept=text/html'
both 'an escaped quote' 'a{b="c\"d"} 1' 'a b=c"d' 'a b=c\"d'
both 'a brace' 'a{path="/users/{id}"} 1' 'a path=/users/{id}' nothing
both 'a colon' 'job:a:rate5m{b="c"} 1' 'job:a:rate5m b=c' nothing
both blanks 'a { b = "c" } 1' 'a b=c' nothing
