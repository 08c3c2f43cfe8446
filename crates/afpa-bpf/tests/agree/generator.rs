//! Generated heads: composed of lines and mutated, the same sequence in every run.

use super::heads::{LINES, REQUEST_LINES, USUAL};

/// Pieces on which the grammars turn; random bytes alone would seldom make one.
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
    b";q=1",
    b"\"",
    b"*",
    b"-",
    b".",
    b"/",
    b"..",
    b"%2e",
    b"%2F",
    b"%",
    b"W/",
    b"\x7f",
    b"\x80",
    b"\xff",
    b"HTTP/1.1",
    b"Host: b\r\n",
    b"\r\n\r\n",
    b"GET ",
    b"[",
    b"]",
    b"_",
    b"~",
    b"^",
    b"@",
];

/// One head: half of them composed of lines, half a seed, most of them spoiled in a few places.
pub fn head(seeds: &[Vec<u8>], chance: &mut Chance) -> Vec<u8> {
    let mut head = if chance.below(2) == 0 { compose(chance) } else { chance.pick(seeds).clone() };
    for _ in 0..chance.below(6).saturating_sub(2) {
        mutate(&mut head, seeds, chance);
    }
    head
}

fn compose(chance: &mut Chance) -> Vec<u8> {
    let lines = if chance.below(4) > 0 { &REQUEST_LINES[..USUAL] } else { REQUEST_LINES };
    let mut head = (*chance.pick(lines)).to_owned();
    head.push_str("\r\n");
    if chance.below(8) > 0 {
        head.push_str("Host: server:8080\r\n");
    }
    let lines = if chance.below(50) == 0 { 55 + chance.below(60) } else { chance.below(5) };
    for _ in 0..lines {
        head.push_str(chance.pick::<&str>(LINES));
        head.push_str("\r\n");
    }
    head.push_str("\r\n");
    head.into_bytes()
}

fn mutate(input: &mut Vec<u8>, seeds: &[Vec<u8>], chance: &mut Chance) {
    let at = chance.below(input.len() + 1);
    let end = (at + chance.below(8)).min(input.len());
    match chance.below(10) {
        0 => input.truncate(at),
        1 => drop(input.drain(at..end)),
        2 => input.insert(at, chance.next() as u8),
        3 if at < end => input[at] ^= 1 << chance.below(8),
        4 => {
            let other = chance.pick(seeds);
            let from = chance.below(other.len() + 1);
            input.splice(at..end, other[from..].iter().copied());
        }
        5 | 6 => insert_line(input, chance),
        7 => stretch(input, at, chance),
        8 if at < end => input[at] = input[at].wrapping_add(1),
        _ => drop(input.splice(at..at, chance.pick(FRAGMENTS).iter().copied())),
    }
}

/// A further line between two others.
fn insert_line(input: &mut Vec<u8>, chance: &mut Chance) {
    let starts: Vec<usize> = input
        .windows(2)
        .enumerate()
        .filter(|(_, two)| two == b"\r\n")
        .map(|(at, _)| at + 2)
        .collect();
    if !starts.is_empty() {
        let at = *chance.pick(&starts);
        let line = [chance.pick(LINES).as_bytes(), b"\r\n"].concat();
        input.splice(at..at, line);
    }
}

/// Long runs: limits are where parsers part.
fn stretch(input: &mut Vec<u8>, at: usize, chance: &mut Chance) {
    let byte = *chance.pick(b"aa0. ,\"/");
    let length = if chance.below(4) == 0 { chance.below(1600) } else { chance.below(70) };
    input.splice(at..at, std::iter::repeat_n(byte, length));
}

/// xorshift64*: the same sequence in every run, so that a failure comes back.
pub struct Chance(pub u64);

impl Chance {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11
    }

    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }

    pub fn pick<'t, T>(&mut self, from: &'t [T]) -> &'t T {
        &from[self.below(from.len())]
    }
}
