//! The fields of a response's head that decide about caching, read in one pass.

use super::control::LONGEST;
use super::targeted;
use super::{Optional, ResponseControl, StoredControl};
use crate::media;
use crate::syntax::{list, trim};

/// The Expires field (section 5.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Expires {
    /// There is none.
    #[default]
    Absent,
    /// It is no date, or there are several, and means a time in the past.
    Past,
    /// Seconds since the epoch.
    At(u64),
}

/// The facts of a final response's head that decide about caching. The times are as the response has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResponseFacts {
    /// The status code.
    pub status: u16,
    /// The directives that count here: those of a targeted field, if there is one, else of Cache-Control.
    pub control: ResponseControl,
    /// Whether they are those of a targeted field (RFC 9213), so that Expires does not count.
    pub is_targeted: bool,
    /// Date, if it is one.
    pub date: Option<u64>,
    /// Age (section 5.1); a malformed value counts as none.
    pub age: u64,
    /// Expires.
    pub expires: Expires,
    /// Last-Modified, if it is a date.
    pub last_modified: Option<u64>,
    /// Whether there is an ETag.
    pub has_etag: bool,
    /// Whether there is a Vary that names fields.
    pub varies: bool,
    /// Whether Vary has the member `*`.
    pub varies_by_more: bool,
    /// Whether it sets cookies.
    pub sets_cookie: bool,
    /// Whether it is a stream of events (`text/event-stream`).
    pub is_events: bool,
}

/// The facts that still count once the response is stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoredFacts {
    /// The status code.
    pub status: u16,
    /// The directives that count.
    pub control: StoredControl,
    /// Date; 0: it is none.
    pub date: u64,
    /// Last-Modified, if it is a date.
    pub last_modified: Optional<u64>,
}

impl From<&ResponseFacts> for StoredFacts {
    fn from(facts: &ResponseFacts) -> Self {
        let ResponseFacts { status, control, date, last_modified, .. } = *facts;
        let (control, last_modified) = (StoredControl::from(&control), last_modified.into());
        Self { status, control, date: date.unwrap_or_default(), last_modified }
    }
}

impl ResponseFacts {
    /// Reads the fields of a head. `targets`: names of targeted fields, the one that counts most first
    /// (RFC 9213 section 2.2).
    pub fn of<'b, F>(status: u16, fields: F, targets: &[impl AsRef<str>]) -> Self
    where
        F: Iterator<Item = (&'b [u8], &'b [u8])> + Clone,
    {
        let mut facts = Self { status, ..Self::default() };
        let (mut seen_age, mut has_target) = (false, false);
        for (name, value) in fields.clone() {
            match name.len() {
                3 if is(name, "age") && !seen_age => {
                    seen_age = true;
                    facts.age = age(value);
                }
                4 if is(name, "date") => facts.date = date(value),
                4 if is(name, "etag") => facts.has_etag = true,
                4 if is(name, "vary") => {
                    facts.varies |= list(value).next().is_some();
                    facts.varies_by_more |= list(value).any(|member| member == b"*");
                }
                7 if is(name, "expires") => {
                    facts.expires = match (facts.expires, date(value)) {
                        (Expires::Absent, Some(at)) => Expires::At(at),
                        _ => Expires::Past,
                    };
                }
                10 if is(name, "set-cookie") => facts.sets_cookie = true,
                12 if is(name, "content-type") => facts.is_events |= media::is_events(value),
                13 if is(name, "cache-control") => facts.control.add(value),
                13 if is(name, "last-modified") => facts.last_modified = date(value),
                _ => {}
            }
            has_target |= targets.iter().any(|target| is(name, target.as_ref()));
        }
        if has_target {
            facts.aim(fields, targets);
        }
        facts
    }

    /// Takes the directives of the first targeted field that is valid (RFC 9213 section 2.2).
    fn aim<'b, F>(&mut self, fields: F, targets: &[impl AsRef<str>])
    where
        F: Iterator<Item = (&'b [u8], &'b [u8])> + Clone,
    {
        let control = targets.iter().find_map(|target| {
            let lines = fields.clone().filter(|(name, _)| is(name, target.as_ref()));
            targeted::parse(lines.map(|(_, value)| value))
        });
        if let Some(control) = control {
            self.control = control;
            self.is_targeted = true;
            self.expires = Expires::Absent;
        }
    }

    /// Whether a request to the server can ask whether the response is still current.
    pub fn has_validator(&self) -> bool {
        self.has_etag || self.last_modified.is_some()
    }

    /// Whether the response says for how long it is fresh.
    pub fn has_lifetime(&self) -> bool {
        self.control.has_lifetime() || self.expires != Expires::Absent
    }
}

fn is(name: &[u8], known: &str) -> bool {
    name.eq_ignore_ascii_case(known.as_bytes())
}

/// Section 5.1: of a list the first member counts, and a value that is no number is ignored.
fn age(value: &[u8]) -> u64 {
    let first = value.split(|&byte| byte == b',').next().map(trim).unwrap_or_default();
    match first {
        [] => 0,
        digits if digits.iter().all(u8::is_ascii_digit) => {
            crate::syntax::number(digits).unwrap_or(LONGEST).min(LONGEST)
        }
        _ => 0,
    }
}

/// A date in any case, and of any day of the week: the rest of the date fixes the day anyway, and a cache may be
/// lenient (section 4.2).
pub(super) fn date(value: &[u8]) -> Option<u64> {
    crate::date::parse(value).or_else(|| {
        let mut room = [0; 40];
        let text = room.get_mut(..value.len())?;
        text.copy_from_slice(value);
        let mut first = true;
        for byte in text.iter_mut() {
            let is_letter = byte.is_ascii_alphabetic();
            match first {
                true => byte.make_ascii_uppercase(),
                false => byte.make_ascii_lowercase(),
            }
            first = !is_letter;
        }
        if let Some(zone) = text.last_chunk_mut::<4>()
            && *zone == *b" Gmt"
        {
            *zone = *b" GMT";
        }
        crate::date::parse(text).or_else(|| {
            const DAYS: [&[u8; 3]; 7] = [b"Mon", b"Tue", b"Wed", b"Thu", b"Fri", b"Sat", b"Sun"];
            DAYS.contains(&text.first_chunk()?).then_some(())?;
            DAYS.into_iter().find_map(|day| {
                *text.first_chunk_mut()? = *day;
                crate::date::parse(text)
            })
        })
    })
}
