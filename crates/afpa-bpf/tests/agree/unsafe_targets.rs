//! Unsafe requests: what user mode reads as one is noted by its target, and a safe one is not.

use afpa_abi::{HASH_PRIME, PATH_MAX, UNSAFE_BITS};
use afpa_http::{FieldSlots, RequestLimits, request};

use super::world::HASH_SEED;

/// As in `property.rs`.
const LIMITS: RequestLimits = RequestLimits { request_line: 512, head: 2560, fields: 63 };
/// Longer methods are not looked at.
const METHOD_MAX: usize = 31;

/// What has to be noted.
#[derive(Debug, PartialEq, Eq)]
enum Wanted {
    /// Whatever the programs think of it: user mode refuses it, or nothing can be pinned under its target.
    Anything,
    Nothing,
    Place(u32),
}

/// The property. True: something was to be noted. The error says who said what.
pub fn agree(input: &[u8], found: u32) -> Result<bool, String> {
    match wanted(input) {
        Wanted::Nothing if found != 0 => Err(format!("a safe request is noted at {found}")),
        Wanted::Place(place) if found != place => {
            Err(format!("an unsafe request is noted at {found}, and not at {place}"))
        }
        wanted => Ok(matches!(wanted, Wanted::Place(_))),
    }
}

fn wanted(input: &[u8]) -> Wanted {
    let mut slots = FieldSlots::new();
    if !matches!(request::parse(input, &mut slots, &LIMITS), Ok(Some(_))) {
        return Wanted::Anything;
    }
    let begin = input.iter().position(|byte| !b"\r\n".contains(byte)).unwrap_or_default();
    let mut words = input.get(begin..).unwrap_or_default().split(|byte| *byte == b' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    if [&b"GET"[..], b"HEAD", b"OPTIONS", b"TRACE"].contains(&method) {
        return Wanted::Nothing;
    }
    let upper = method.first().is_some_and(u8::is_ascii_uppercase);
    let path = match target.strip_prefix(b"http://").or(target.strip_prefix(b"https://")) {
        None => target,
        Some(rest) => {
            let path = rest.iter().position(|byte| *byte == b'/').unwrap_or(rest.len());
            let host = 1..=60; // with its port: longer ones select no site
            rest.get(path..).filter(|_| host.contains(&path)).unwrap_or_default()
        }
    };
    let may_be_pinned = path.starts_with(b"/") && path.len() <= PATH_MAX;
    match upper && method.len() <= METHOD_MAX && may_be_pinned {
        true => Wanted::Place(1 + (hash(path) >> (64 - UNSAFE_BITS)) as u32),
        false => Wanted::Anything,
    }
}

fn hash(path: &[u8]) -> u64 {
    path.chunks(8).fold(HASH_SEED, |hash, chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        let hash = (hash ^ u64::from_le_bytes(word)).wrapping_mul(HASH_PRIME);
        hash ^ hash >> 32
    })
}
