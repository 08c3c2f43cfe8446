//! Fuzz targets without a fuzzer: over their committed seeds, and over a fixed sequence of mutations of
//! them, the same in every run. `fuzz/README.md` says how to run them for longer.

use std::panic;
use std::path::{Path, PathBuf};

use crate::Random;

/// Mutations a target; all targets of a crate together take a few seconds in a debug build.
const MUTATIONS: usize = 20_000;

/// Runs `target` over the seeds in `fuzz/corpus/NAME`, and over mutations of them with `fragments`: the words
/// of the target's grammar, which random bytes alone would seldom make.
///
/// # Panics
/// When a promise of the target breaks; the input is shown before.
pub fn smoke(name: &str, target: fn(&[u8]), fragments: &[&[u8]]) {
    smoke_some(name, target, fragments, MUTATIONS);
}

/// As [`smoke`], with so many mutations: for targets that take long.
///
/// # Panics
/// As [`smoke`].
pub fn smoke_some(name: &str, target: fn(&[u8]), fragments: &[&[u8]], mutations: usize) {
    let seeds = seeds(name);
    assert!(seeds.len() >= 4, "the seeds of {name} are missing");
    for seed in &seeds {
        check(name, target, seed);
    }
    let mut random = Random::new(0x9e37_79b9_7f4a_7c15);
    for _ in 0..mutations {
        let mut input = random.pick(&seeds).clone();
        for _ in 0..=random.below(4) {
            mutate(&mut input, &seeds, fragments, &mut random);
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

fn mutate(input: &mut Vec<u8>, seeds: &[Vec<u8>], fragments: &[&[u8]], random: &mut Random) {
    let at = random.below(input.len() + 1);
    let end = (at + random.below(8)).min(input.len());
    match random.below(6) {
        0 => input.truncate(at),
        1 => drop(input.drain(at..end)),
        2 => input.insert(at, random.next() as u8),
        3 if at < end => input[at] ^= 1 << random.below(8),
        4 => {
            let other = random.pick(seeds);
            let from = random.below(other.len() + 1);
            input.splice(at..end, other[from..].iter().copied());
        }
        _ => {
            let fragment = *random.pick(fragments);
            input.splice(at..at, fragment.iter().copied());
        }
    }
}
