//! Prints how each replacement policy does on a trace of yours, and `auto`, which judges them every 10,000
//! requests and changes to the best.
//!
//! ```text
//! cargo run --release -p afpa-cache --example policy_replay -- TRACE CAPACITY
//! ```
//!
//! TRACE has one request a line, `size key`, size in bytes, key anything without a line break; `-`
//! reads it from standard input. CAPACITY is the size of the cache in bytes. From an access log in
//! the combined format: `awk '$10 > 0 { print $10, $7 }' access.log`.

use std::collections::HashMap;
use std::error::Error;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::process::ExitCode;

use afpa_cache::PolicyKind;
use afpa_cache::policy::auto::replay_auto;
use afpa_cache::policy::replay::{Request, compare, line, table};

/// Requests between two judgements of `auto`.
const PERIOD: usize = 10_000;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [trace, capacity] = arguments.as_slice() else {
        eprintln!(
            "usage: policy_replay TRACE CAPACITY   (TRACE: lines of `size key`, `-` for stdin)"
        );
        return ExitCode::from(2);
    };
    match run(trace, capacity) {
        Ok(table) => {
            print!("{table}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("policy_replay: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(trace: &str, capacity: &str) -> Result<String, Box<dyn Error>> {
    let capacity = capacity.parse().map_err(|error| format!("capacity {capacity:?}: {error}"))?;
    let requests = match trace {
        "-" => read(io::stdin().lock())?,
        path => {
            read(BufReader::new(File::open(path).map_err(|error| format!("{path}: {error}"))?))?
        }
    };
    let mut text = table(&compare(capacity, &requests));
    let (auto, changes) = replay_auto(PolicyKind::default(), capacity, &requests, PERIOD);
    line(&mut text, "auto", &auto);
    for (number, change) in changes {
        text.push_str(&format!("  after {number} requests: {change}\n"));
    }
    Ok(text)
}

/// Numbers the keys in the order in which they first appear.
fn read(lines: impl BufRead) -> Result<Vec<Request>, Box<dyn Error>> {
    let (mut requests, mut keys) = (Vec::new(), HashMap::new());
    for (number, line) in (1..).zip(lines.split(b'\n')) {
        let line = line?;
        let line = line.trim_ascii();
        if line.is_empty() {
            continue;
        }
        let (size, key) = parse(line).ok_or_else(|| format!("line {number}: not `size key`"))?;
        let next = keys.len() as u64;
        requests.push(Request::new(*keys.entry(key.to_vec()).or_insert(next), size));
    }
    Ok(requests)
}

fn parse(line: &[u8]) -> Option<(u64, &[u8])> {
    let space = line.iter().position(u8::is_ascii_whitespace)?;
    let (size, key) = line.split_at(space);
    let size = std::str::from_utf8(size).ok()?.parse().ok()?;
    Some((size, key.trim_ascii()))
}
