//! The proxy's fuzz targets without a fuzzer: over their committed seeds, and over a fixed sequence of
//! mutations of them. `fuzz/README.md` says how to run them for longer.

use std::panic;
use std::path::{Path, PathBuf};

use afpa_testkit::Random;

#[allow(unreachable_pub)]
#[path = "../../../fuzz/src/proxy.rs"]
mod targets;

/// Mutations a target; all of them together take a few seconds in a debug build.
const MUTATIONS: usize = 20_000;

/// What the grammars turn on; random bytes alone would seldom make it.
const FRAGMENTS: &[&[u8]] = &[
    b"\r\n",
    b"\n",
    b"\r",
    b"\0",
    b" ",
    b":",
    b",",
    b";",
    b"\"",
    b"-",
    b"0",
    b"%2F",
    b"\r\n--B-B--",
    b"\r\n0\r\n\r\n",
    b"chunked",
    b"close",
    b"HTTP/1.1",
    b"HTTP/1.0",
    b"\x7f",
    b"\xff",
    b"Content-Length: 5\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"Connection: content-length, x\r\n",
    b"Upgrade: websocket\r\n",
    b"99999999999999999999",
];

#[test]
fn ending() {
    run("ending", targets::ending);
}

#[test]
fn response() {
    run("response", targets::response);
}

#[test]
fn forward() {
    run("forward", targets::forward);
}

fn run(name: &str, target: fn(&[u8])) {
    let seeds = seeds(name);
    assert!(seeds.len() >= 4, "the seeds of {name} are missing");
    for seed in &seeds {
        check(name, target, seed);
    }
    let mut random = Random::seeded(0x9e37_79b9_7f4a_7c15);
    for _ in 0..MUTATIONS {
        let mut input = random.pick(&seeds).clone();
        for _ in 0..=random.below(4) {
            mutate(&mut input, &seeds, &mut random);
        }
        check(name, target, &input);
    }
}

/// Shows the input that broke a promise: it is a new seed once the promise is kept.
fn check(name: &str, target: fn(&[u8]), input: &[u8]) {
    if let Err(cause) = panic::catch_unwind(|| target(input)) {
        eprintln!("{name} fails on b\"{}\"", input.escape_ascii());
        panic::resume_unwind(cause);
    }
}

fn seeds(name: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name);
    let entries = folder.read_dir().expect("the folder of seeds");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    paths.iter().map(|path| std::fs::read(path).expect("a seed")).collect()
}

fn mutate(input: &mut Vec<u8>, seeds: &[Vec<u8>], random: &mut Random) {
    let at = random.below(input.len() + 1);
    let end = (at + random.below(8)).min(input.len());
    match random.below(6) {
        0 => input.truncate(at),
        1 => drop(input.drain(at..end)),
        2 => input.insert(at, random.number() as u8),
        3 if at < end => input[at] ^= 1 << random.below(8),
        4 => {
            let other = random.pick(seeds);
            let from = random.below(other.len() + 1);
            input.splice(at..end, other[from..].iter().copied());
        }
        _ => {
            let fragment = *random.pick(FRAGMENTS);
            input.splice(at..at, fragment.iter().copied());
        }
    }
}
