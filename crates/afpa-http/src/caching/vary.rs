//! The secondary key (section 4.1): the fields of a request that `Vary` names, so that two requests with one key look the
//! same to a server that reads these fields only.
//!
//! A field stands there byte by byte, in the lines in which it came: servers choose by order, by white space, and by
//! whether a field is there at all. Four fields are known to be lists. Their differences that mean nothing by RFC 9110
//! are left out ([`ListKind`]). A name that CGI does not tell from the field's (`Accept_Language`) is kept with the
//! field.

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

/// Appends the secondary key of a request: each name, and how the field stands in the request.
pub fn put_key(names: &[Box<str>], request: &Request<'_, '_>, out: &mut Vec<u8>) {
    for name in names {
        // A line feed stands in no value, and no sign below in a name.
        out.push(b'\n');
        out.extend_from_slice(name.as_bytes());
        put_field(name, request, out);
    }
}

/// Stands before the members of a list.
const MEMBERS: u8 = b'=';
/// Stands before the value of a line. No value holds a control character other than a tab (RFC 9110 section 5.5).
const LINE: u8 = b'\r';
/// Stands before the name and the value of a line with another name that some servers take for the same one.
const ALIKE: u8 = 1;

/// Nothing, if the field is not there.
fn put_field(name: &str, request: &Request<'_, '_>, out: &mut Vec<u8>) {
    let lines =
        || request.fields().filter(|(line, _)| syntax::is_alike(line.as_bytes(), name.as_bytes()));
    let is_own = |line: &str| line.eq_ignore_ascii_case(name);
    if let Some(kind) = ListKind::of(name)
        && lines().all(|(line, value)| is_own(line) && !value.contains(&b'"'))
    {
        return kind.put(lines().map(|(_, value)| value), out);
    }
    for (line, value) in lines() {
        if is_own(line) {
            out.push(LINE);
        } else {
            out.push(ALIKE);
            out.extend_from_slice(line.as_bytes());
            out.push(b':');
        }
        out.extend_from_slice(value);
    }
}

/// Fields that are known to be lists, by what means nothing in them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ListKind {
    /// White space and empty members between the others.
    Plain,
    /// That, and case (RFC 4647 section 2, RFC 9110 section 8.3.2).
    Names,
    /// That, and order: weights alone decide (RFC 9110 section 12.5.3). Of a coding that is named twice a server may take either
    /// weight, so that the order of such a list counts.
    Set,
}

impl ListKind {
    fn of(name: &str) -> Option<Self> {
        match name {
            "accept" => Some(Self::Plain),
            "accept-charset" | "accept-language" => Some(Self::Names),
            "accept-encoding" => Some(Self::Set),
            _ => None,
        }
    }

    fn put<'b>(self, lines: impl Iterator<Item = &'b [u8]>, out: &mut Vec<u8>) {
        let begin = out.len() + 1;
        for value in lines {
            if out.len() < begin {
                out.push(MEMBERS);
            }
            for member in list(value) {
                if out.len() > begin {
                    out.push(b',');
                }
                out.extend_from_slice(member);
            }
        }
        if self != Self::Plain {
            out.get_mut(begin..).unwrap_or_default().make_ascii_lowercase();
        }
        if self == Self::Set {
            sort(out, begin);
        }
    }
}

/// The members in a secondary key of this one list, as [`put_key`] writes them; `Some(None)`: the field was not there. `None`:
/// it is no such key, or the field was not taken for a list.
pub fn value_of<'k>(key: &'k [u8], name: &str) -> Option<Option<&'k [u8]>> {
    match key.strip_prefix(b"\n")?.strip_prefix(name.as_bytes())? {
        [] => Some(None),
        [MEMBERS, value @ ..] => Some(Some(value)),
        _ => None,
    }
}

/// Members of a list that are sorted; longer lists stay as they are, and have a key of their own.
const MOST_SORTED: usize = 32;

/// Sorts the members from `begin` on, in the memory behind them.
fn sort(out: &mut Vec<u8>, begin: usize) {
    let end = out.len();
    if end <= begin {
        return;
    }
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
    if names_twice(out, members) {
        return;
    }
    members.sort_unstable_by(|a, b| out.get(a.0..a.1).cmp(&out.get(b.0..b.1)));
    for &mut (from, to) in members {
        out.push(b',');
        out.extend_from_within(from..to);
    }
    out.copy_within(end + 1.., begin);
    out.truncate(end);
}

/// Whether two members name one coding.
fn names_twice(text: &[u8], members: &[(usize, usize)]) -> bool {
    let name = |at: usize| {
        let (from, to) = members.get(at).copied().unwrap_or_default();
        coding_of(text.get(from..to).unwrap_or_default())
    };
    (1..members.len()).any(|at| (0..at).any(|before| name(before) == name(at)))
}

/// The coding that a member of Accept-Encoding names, in lower case; of two names that are the same (RFC 9110 section 8.4.1) the newer.
fn coding_of(member: &[u8]) -> &[u8] {
    let name = member.split(|&byte| byte == b';').next().map(syntax::trim).unwrap_or_default();
    match name {
        b"x-gzip" => b"gzip",
        b"x-compress" => b"compress",
        name => name,
    }
}

#[cfg(test)]
mod tests;
