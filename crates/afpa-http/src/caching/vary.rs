//! The secondary key (section 4.1): the fields of a request that `Vary` names, normalised.
//!
//! Two requests have the same key if their fields differ only in what means nothing: how a list is split
//! into lines, white space around its members; for Accept-Encoding, Accept-Language and Accept also case and,
//! where weights do not say otherwise, order.

use crate::syntax::list;
use crate::{Request, syntax};

/// The names that Vary lines list, in lower case, sorted, each once. `None`: one is `*`, or there are more
/// than [`MOST_NAMES`].
pub fn names<'b>(lines: impl Iterator<Item = &'b [u8]>) -> Option<Vec<Box<str>>> {
    let mut names = Vec::new();
    for member in lines.flat_map(list) {
        if member == b"*" {
            return None;
        }
        let name = str::from_utf8(member).ok().filter(|_| syntax::is_token(member))?;
        names.push(name.to_ascii_lowercase().into_boxed_str());
    }
    names.sort_unstable();
    names.dedup();
    (names.len() <= MOST_NAMES).then_some(names)
}

/// A response that depends on more fields than this is not stored.
pub const MOST_NAMES: usize = 16;

/// Appends the secondary key of a request: each name, and the normalised value. Values are told apart from one
/// another, and from a field that is not there; and from those of other fields, by which a server's responses varied
/// before.
pub fn put_key(names: &[Box<str>], request: &Request<'_, '_>, out: &mut Vec<u8>) {
    for name in names {
        // A line feed stands in no value, and neither sign below in a name.
        out.push(b'\n');
        out.extend_from_slice(name.as_bytes());
        let begin = out.len() + 1;
        let mut there = false;
        let lines = request.fields().filter(|(line, _)| line.eq_ignore_ascii_case(name));
        for (_, value) in lines {
            for member in list(value) {
                out.push(if there { b',' } else { b'=' });
                there = true;
                out.extend_from_slice(member);
            }
        }
        if there && is_preference(name) {
            order(out, begin);
        }
    }
}

/// The value in a secondary key of this one field, as [`put_key`] writes it; `Some(None)`: the field was not there. `None`: it
/// is no such key.
pub fn value_of<'k>(key: &'k [u8], name: &str) -> Option<Option<&'k [u8]>> {
    match key.strip_prefix(b"\n")?.strip_prefix(name.as_bytes())? {
        [] => Some(None),
        [b'=', value @ ..] => Some(Some(value)),
        _ => None,
    }
}

/// Fields whose members are weighted preferences (RFC 9110 section 12.4.2).
fn is_preference(name: &str) -> bool {
    matches!(name, "accept-encoding" | "accept-language" | "accept" | "accept-charset")
}

/// Brings the members from `begin` on into one form: lower case, without white space, and sorted.
///
/// That is right in either case: members of the same weight are equal alternatives, whatever their order;
/// and the weights stay with the members, so that other weights make another key.
fn order(out: &mut Vec<u8>, begin: usize) {
    let Some(tail) = out.get_mut(begin..) else { return };
    tail.make_ascii_lowercase();
    let mut kept = begin;
    for at in begin..out.len() {
        if let Some(&byte) = out.get(at)
            && byte != b' '
            && byte != b'\t'
        {
            if let Some(place) = out.get_mut(kept) {
                *place = byte;
            }
            kept += 1;
        }
    }
    out.truncate(kept);
    sort(out, begin);
}

/// Members of a list that are sorted; longer lists stay as they are, and have a key of their own.
const MOST_SORTED: usize = 32;

/// Sorts the members from `begin` on, in the memory behind them.
fn sort(out: &mut Vec<u8>, begin: usize) {
    let end = out.len();
    let mut members = [(0, 0); MOST_SORTED];
    let mut count = 0;
    let mut from = begin;
    for member in out.get(begin..).unwrap_or_default().split(|&byte| byte == b',') {
        let Some(place) = members.get_mut(count) else { return };
        *place = (from, from + member.len());
        from += member.len() + 1;
        count += 1;
    }
    let members = members.get_mut(..count).unwrap_or_default();
    members.sort_unstable_by(|a, b| out.get(a.0..a.1).cmp(&out.get(b.0..b.1)));
    for &mut (from, to) in members {
        out.push(b',');
        out.extend_from_within(from..to);
    }
    out.copy_within(end + 1.., begin);
    out.truncate(end);
}

/// Whether a stored response in one language may answer a request with another Accept-Language: the language
/// is, by its weight, the one that the request likes most (RFC 9110 section 12.5.4). Of several with the same
/// weight none is liked most.
pub fn likes_most<'b>(accept: impl Iterator<Item = &'b [u8]>, language: &[u8]) -> bool {
    let mut best: Option<(&[u8], u32)> = None;
    let mut tied = false;
    for member in accept.flat_map(list) {
        let mut parts = member.split(|&byte| byte == b';').map(syntax::trim);
        let Some(tag) = parts.next() else { continue };
        let weight = parts.find_map(weight).unwrap_or(1000);
        match best {
            Some((_, held)) if weight < held => {}
            Some((_, held)) if weight == held => tied = true,
            _ => (best, tied) = (Some((tag, weight)), false),
        }
    }
    best.is_some_and(|(tag, weight)| weight > 0 && !tied && tag.eq_ignore_ascii_case(language))
}

/// `q=0.5` in thousandths; `None` if it is no weight.
fn weight(parameter: &[u8]) -> Option<u32> {
    let (name, value) = parameter.split_at_checked(2)?;
    if !name.eq_ignore_ascii_case(b"q=") {
        return None;
    }
    let (whole, fraction) = match value {
        [whole @ b'0'..=b'1'] => (whole, &b""[..]),
        [whole @ b'0'..=b'1', b'.', fraction @ ..] if fraction.len() <= 3 => (whole, fraction),
        _ => return None,
    };
    let mut sum = u32::from(whole - b'0');
    for at in 0..3 {
        let digit = fraction.get(at).copied().unwrap_or(b'0');
        sum = sum * 10 + char::from(digit).to_digit(10)?;
    }
    Some(sum.min(1000))
}
