//! The fuzz targets without a fuzzer: over their committed seeds, and over a fixed sequence of
//! mutations of them. `fuzz/README.md` says how to run them for longer.

use std::panic;
use std::path::{Path, PathBuf};

#[allow(unreachable_pub)]
#[path = "../../../fuzz/src/lib.rs"]
mod targets;

/// Mutations a target; all five together take a few seconds in a debug build.
const MUTATIONS: usize = 20_000;

/// A fragment is what the grammars turn on; random bytes alone would seldom make one.
const FRAGMENTS: &[&[u8]] = &[
    b"\r\n",
    b"\n",
    b"\r",
    b"\0",
    b" ",
    b"\t",
    b":",
    b",",
    b";",
    b"q=0",
    b"\"",
    b"*",
    b"-",
    b"0",
    b"f",
    b"/",
    b"..",
    b"%2e",
    b"%2F",
    b"%",
    b"bytes=",
    b"W/",
    b"chunked",
    b"Host: b\r\n",
    b"\x7f",
    b"\xff",
    b"HTTP/1.1",
    b"Content-Length: 5\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"99999999999999999999",
];

#[test]
fn request() {
    run("request", targets::request);
}

#[test]
fn target() {
    run("target", targets::target);
}

#[test]
fn chunked() {
    run("chunked", targets::chunked);
}

#[test]
fn selection() {
    run("selection", targets::selection);
}

#[test]
fn coding() {
    run("coding", targets::coding);
}

fn run(name: &str, target: fn(&[u8])) {
    let seeds = seeds(name);
    assert!(seeds.len() >= 4, "the seeds of {name} are missing");
    for seed in &seeds {
        check(name, target, seed);
    }
    let mut chance = Chance(0x9e37_79b9_7f4a_7c15);
    for _ in 0..MUTATIONS {
        let mut input = seeds[chance.below(seeds.len())].clone();
        for _ in 0..=chance.below(4) {
            mutate(&mut input, &seeds, &mut chance);
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

fn mutate(input: &mut Vec<u8>, seeds: &[Vec<u8>], chance: &mut Chance) {
    let at = chance.below(input.len() + 1);
    let end = (at + chance.below(8)).min(input.len());
    match chance.below(6) {
        0 => input.truncate(at),
        1 => drop(input.drain(at..end)),
        2 => input.insert(at, chance.next() as u8),
        3 if at < end => input[at] ^= 1 << chance.below(8),
        4 => {
            let other = &seeds[chance.below(seeds.len())];
            let from = chance.below(other.len() + 1);
            input.splice(at..end, other[from..].iter().copied());
        }
        _ => {
            let fragment = FRAGMENTS[chance.below(FRAGMENTS.len())];
            input.splice(at..at, fragment.iter().copied());
        }
    }
}

/// xorshift64*: the same sequence in every run, so that a failure comes back.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }
}
