//! One rule: its conditions, and its changes of fields.

use super::lines::{name_of, put_last, remove_lines};
use crate::{media, syntax};

/// A rule with its conditions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct FieldRule {
    /// The beginning of the URL path; empty: any.
    pub prefix: Vec<u8>,
    /// The first and the last status of each range; none: all.
    pub statuses: Vec<(u16, u16)>,
    /// Media types in lower case, or `type/*`; none: all, and answers without one.
    pub types: Vec<String>,
    /// On answers.
    pub answer: Change,
    /// On requests to servers. They have neither status nor type.
    pub request: Change,
}

/// A change of some fields: lines are removed first, then set, then added.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Change {
    /// Names.
    pub remove: Vec<String>,
    /// In the place of all lines of the name.
    pub set: Vec<(String, String)>,
    /// Beside lines of the name.
    pub add: Vec<(String, String)>,
}

impl FieldRule {
    /// A 304 stands for the 200 that the client has (RFC 9110 section 15.4.5).
    pub(super) fn fits(&self, status: u16, kind: Option<&[u8]>) -> bool {
        let within =
            |code: u16| self.statuses.iter().any(|&(first, last)| first <= code && code <= last);
        let by_status =
            self.statuses.is_empty() || within(status) || (status == 304 && within(200));
        by_status
            && (self.types.is_empty()
                || kind.is_some_and(|kind| media::is_listed(kind, &self.types)))
    }
}

impl Change {
    /// Whether it changes nothing.
    pub fn is_empty(&self) -> bool {
        self.remove.is_empty() && self.set.is_empty() && self.add.is_empty()
    }

    fn takes_out(&self, name: &[u8]) -> bool {
        let is = |own: &String| own.as_bytes().eq_ignore_ascii_case(name);
        self.remove.iter().any(is) || self.set.iter().any(|(own, _)| is(own))
    }

    pub(super) fn puts(&self, name: &str) -> bool {
        self.set.iter().chain(&self.add).any(|(own, _)| own.eq_ignore_ascii_case(name))
    }

    /// Changes the head that begins at `begin` and ends with the buffer. `keeps`: a name that is left alone.
    pub(super) fn apply(&self, out: &mut Vec<u8>, begin: usize, keeps: Option<&[u8]>) {
        let is_kept = |name: &[u8]| keeps.is_some_and(|kept| kept.eq_ignore_ascii_case(name));
        if !(self.remove.is_empty() && self.set.is_empty()) {
            remove_lines(out, begin, |name| self.takes_out(name) && !is_kept(name));
        }
        let lines = self.set.iter().chain(&self.add);
        for (name, value) in lines.filter(|(name, _)| !is_kept(name.as_bytes())) {
            put_last(out, &[name.as_bytes(), b": ", value.as_bytes()]);
        }
    }
}

/// The media type in a head, if a rule asks for it.
pub(super) fn kind_in<'h>(rule: &FieldRule, out: &'h [u8], begin: usize) -> Option<&'h [u8]> {
    if rule.types.is_empty() {
        return None;
    }
    let lines = out.get(begin..)?.split(|&byte| byte == b'\n').skip(1);
    let mut types = lines.filter(|line| name_of(line).eq_ignore_ascii_case(b"content-type"));
    let line = types.next()?;
    line.get(b"content-type:".len()..).map(syntax::trim)
}
