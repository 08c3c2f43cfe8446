//! Cache-Control (section 5.2): its directives, in requests and in responses.

use crate::syntax::{is_token, trim};

/// Lifetimes that are longer count as this long: 68 years (section 1.2.2 asks for at least 2^31).
pub const LONGEST: u64 = 1 << 31;

/// Seconds, at most [`LONGEST`], in the width in which they are kept.
pub fn bounded(seconds: u64) -> u32 {
    u32::try_from(seconds.min(LONGEST)).unwrap_or(u32::MAX)
}

/// The directives of a response (section 5.2.2), with those of RFC 5861 and RFC 8246.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResponseControl {
    /// The whole response must not be stored.
    pub no_store: bool,
    /// It must not be reused without validation. With field names it is [`Self::has_fields`] instead.
    pub no_cache: bool,
    /// It is for one user. With field names it is [`Self::has_fields`] instead.
    pub private: bool,
    /// `no-cache` or `private` named fields, which are not stored.
    pub has_fields: bool,
    /// It may be stored, also where that is not so by default.
    pub public: bool,
    /// Once stale it must not be used without validation.
    pub must_revalidate: bool,
    /// As `must_revalidate`, for shared caches only.
    pub proxy_revalidate: bool,
    /// It may be stored only by a cache that knows its status code, and then in spite of `no-store`.
    pub must_understand: bool,
    /// It does not change while it is fresh (RFC 8246).
    pub immutable: bool,
    /// Its lifetime.
    pub max_age: Option<u32>,
    /// Its lifetime in shared caches.
    pub s_maxage: Option<u32>,
    /// How long after that it may be used while it is being validated (RFC 5861 section 3).
    pub stale_while_revalidate: Option<u32>,
    /// How long after that it may be used instead of an error (RFC 5861 section 4).
    pub stale_if_error: Option<u32>,
}

/// The directives of a request (section 5.2.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestControl {
    /// The answer must not be stored.
    pub no_store: bool,
    /// A stored response must be validated first.
    pub no_cache: bool,
    /// Only a stored response is wanted.
    pub only_if_cached: bool,
    /// The content is wanted as it is.
    pub no_transform: bool,
    /// No older response is wanted.
    pub max_age: Option<u32>,
    /// It is to stay fresh for so long.
    pub min_fresh: Option<u32>,
    /// It may have been stale for so long.
    pub max_stale: Option<u32>,
    /// RFC 5861 section 4: after an error it may have been stale for so long.
    pub stale_if_error: Option<u32>,
}

impl ResponseControl {
    /// Reads one more Cache-Control line. Where directives contradict each other, the stricter one counts (section
    /// 4.2.1).
    pub fn add(&mut self, line: &[u8]) {
        for (name, argument) in directives(line) {
            self.directive(name, argument);
        }
    }

    /// Whether anything said how long the response is fresh for a shared cache.
    pub fn has_lifetime(&self) -> bool {
        self.max_age.is_some() || self.s_maxage.is_some()
    }

    pub(super) fn directive(&mut self, name: &[u8], argument: Option<&[u8]>) {
        let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
        let seconds = || Some(seconds(argument));
        match name.len() {
            6 if is("public") => self.public = true,
            7 if is("private") => self.named(argument, |control| control.private = true),
            7 if is("max-age") => lower(&mut self.max_age, seconds()),
            8 if is("no-store") => self.no_store = true,
            8 if is("no-cache") => self.named(argument, |control| control.no_cache = true),
            8 if is("s-maxage") => lower(&mut self.s_maxage, seconds()),
            9 if is("immutable") => self.immutable = true,
            14 if is("stale-if-error") => lower(&mut self.stale_if_error, seconds()),
            15 if is("must-revalidate") => self.must_revalidate = true,
            15 if is("must-understand") => self.must_understand = true,
            16 if is("proxy-revalidate") => self.proxy_revalidate = true,
            22 if is("stale-while-revalidate") => {
                lower(&mut self.stale_while_revalidate, seconds());
            }
            _ => {}
        }
    }

    /// A directive that may name fields (sections 5.2.2.4 and 5.2.2.7). Without names it concerns the whole response.
    fn named(&mut self, argument: Option<&[u8]>, all: fn(&mut Self)) {
        let names = argument.map(|names| super::fields::names(names).all(is_token));
        let some = argument.is_some_and(|names| super::fields::names(names).next().is_some());
        match (names, some) {
            (Some(true), true) => self.has_fields = true,
            _ => all(self),
        }
    }
}

impl RequestControl {
    /// Reads the directives of a request. `pragma` counts only where there is no Cache-Control (section 5.4).
    pub fn of<'b>(
        lines: impl Iterator<Item = &'b [u8]>,
        mut pragma: impl Iterator<Item = &'b [u8]>,
    ) -> Self {
        let (mut control, mut any) = (Self::default(), false);
        for line in lines {
            any = true;
            for (name, argument) in directives(line) {
                control.directive(name, argument);
            }
        }
        let no_cache =
            |line: &[u8]| directives(line).any(|(name, _)| name.eq_ignore_ascii_case(b"no-cache"));
        control.no_cache |= !any && pragma.any(no_cache);
        control
    }

    fn directive(&mut self, name: &[u8], argument: Option<&[u8]>) {
        let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
        match name.len() {
            7 if is("max-age") => lower(&mut self.max_age, Some(seconds(argument))),
            8 if is("no-store") => self.no_store = true,
            8 if is("no-cache") => self.no_cache = true,
            9 if is("min-fresh") => self.min_fresh = Some(seconds(argument)),
            // Without an argument any staleness is accepted (section 5.2.1.2).
            9 if is("max-stale") => {
                self.max_stale = Some(argument.map_or(bounded(LONGEST), |_| seconds(argument)));
            }
            12 if is("no-transform") => self.no_transform = true,
            14 if is("only-if-cached") => self.only_if_cached = true,
            14 if is("stale-if-error") => self.stale_if_error = Some(seconds(argument)),
            _ => {}
        }
    }
}

/// The lower of both, if there are both.
fn lower(held: &mut Option<u32>, new: Option<u32>) {
    *held = match (*held, new) {
        (Some(held), Some(new)) => Some(held.min(new)),
        (held, new) => held.or(new),
    };
}

/// An argument in seconds, as a token or quoted (section 5.2). An argument that is no number counts as 0, so that the
/// response is stale (section 4.2.1).
fn seconds(argument: Option<&[u8]>) -> u32 {
    let digits = argument.unwrap_or_default();
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return 0;
    }
    bounded(digits.iter().fold(0, |sum: u64, digit| {
        sum.saturating_mul(10).saturating_add(u64::from(digit.wrapping_sub(b'0')))
    }))
}

/// The directives of a line: names, and arguments without their quotes. Commas within quotes separate nothing. Members
/// of another form are skipped.
pub fn directives(line: &[u8]) -> impl Iterator<Item = (&[u8], Option<&[u8]>)> {
    members(line).filter_map(|member| {
        let equals = member.iter().position(|&byte| byte == b'=');
        let (name, argument) = match equals {
            None => (member, None),
            Some(at) => (member.get(..at)?, Some(unquoted(member.get(at + 1..)?))),
        };
        is_token(name).then_some((name, argument))
    })
}

/// The members of a comma-separated list whose members may hold quoted strings; empty ones are skipped.
pub fn members(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(line);
    std::iter::from_fn(move || {
        let line = rest?;
        let (mut quoted, mut escaped) = (false, false);
        let end = line.iter().position(|&byte| {
            let ends = byte == b',' && !quoted;
            match byte {
                _ if escaped => escaped = false,
                b'\\' if quoted => escaped = true,
                b'"' => quoted = !quoted,
                _ => {}
            }
            ends
        });
        let (member, tail) = match end {
            Some(end) => (line.get(..end), line.get(end + 1..)),
            None => (Some(line), None),
        };
        rest = tail;
        member.map(trim)
    })
    .filter(|member| !member.is_empty())
}

fn unquoted(argument: &[u8]) -> &[u8] {
    match argument {
        [b'"', inner @ .., b'"'] => inner,
        other => other,
    }
}
