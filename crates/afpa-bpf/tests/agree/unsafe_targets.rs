//! Unsafe requests: each that user mode reads as one is noted by its target, and a safe one is not.

use afpa_abi::{HASH_PRIME, PATH_MAX, UNSAFE_ANY, UNSAFE_BITS};
use afpa_http::target::is_simplest;
use afpa_http::{FieldSlots, RequestLimits, request};

use super::world::HASH_SEED;

/// As in `property.rs`.
const LIMITS: RequestLimits = RequestLimits { request_line: 512, head: 2560, fields: 63 };
/// Longer methods are not looked at.
const METHOD_MAX: usize = 31;
/// Of longer request lines it may be the end that matters.
const READ: usize = 300;
/// One more than the place of those that may be for any target.
const ANY: u32 = UNSAFE_ANY as u32 + 1;

/// The note that must be made.
#[derive(Debug, PartialEq, Eq)]
enum Wanted {
    /// Any note is right: user mode refuses the request, or nothing can be pinned under its target.
    Anything,
    Nothing,
    Place(u32),
}

/// The property. True: a note had to be made. The error has the views of both parsers.
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
    let (absolute, path) = path_of(target);
    if method.len() > METHOD_MAX {
        return Wanted::Anything;
    }
    let (before, _) = path.split_at(path.iter().position(|b| *b == b'?').unwrap_or(path.len()));
    match () {
        () if path.is_empty() && absolute => Wanted::Place(ANY),
        () if path.is_empty() || line_length(input) > READ => Wanted::Anything,
        () if !is_simplest(before) => Wanted::Place(ANY),
        () if path.len() > PATH_MAX => Wanted::Anything,
        () => Wanted::Place(1 + (hash(path) >> (64 - UNSAFE_BITS)) as u32),
    }
}

/// Whether the target is in absolute form, and where its path begins; empty: it has none.
fn path_of(target: &[u8]) -> (bool, &[u8]) {
    let scheme = target.windows(3).position(|bytes| bytes == b"://");
    let Some(scheme) = scheme.filter(|_| !target.starts_with(b"/")) else {
        return (false, if target.starts_with(b"/") { target } else { b"" });
    };
    let rest = &target[scheme + 3..];
    let end = rest.iter().position(|byte| b"/?#".contains(byte)).unwrap_or(rest.len());
    (true, rest.get(end..).filter(|path| path.starts_with(b"/")).unwrap_or_default())
}

/// Bytes of the request line.
fn line_length(input: &[u8]) -> usize {
    input.split(|byte| *byte == b'\n').map(<[u8]>::len).find(|length| *length > 1).unwrap_or(0)
}

fn hash(path: &[u8]) -> u64 {
    path.chunks(8).fold(HASH_SEED, |hash, chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        let hash = (hash ^ u64::from_le_bytes(word)).wrapping_mul(HASH_PRIME);
        hash ^ hash >> 32
    })
}
