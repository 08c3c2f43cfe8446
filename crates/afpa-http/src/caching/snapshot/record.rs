//! A stored response as a record.

use super::fields::{Put, Rest};
use crate::caching::{StoredControl, StoredFacts};

/// A stored response, with all that decides about its use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record<'b> {
    /// A digest of the rules by which it was stored.
    pub rules: [u8; 16],
    /// Its primary key, without the number that the rules have in one process. It begins with the label of its URL.
    pub primary: &'b [u8],
    /// The rest of its key: the values of the fields by which it varies.
    pub secondary: &'b [u8],
    /// Its tags, as labels.
    pub tags: Vec<&'b [u8]>,
    /// The names of the fields by which it varies.
    pub vary: Vec<&'b str>,
    /// Status line and field lines, each with its CRLF.
    pub head: &'b [u8],
    /// ETag.
    pub etag: Option<&'b [u8]>,
    /// Last-Modified, as the server wrote it.
    pub last_modified: Option<&'b [u8]>,
    /// Content-Type.
    pub content_type: Option<&'b str>,
    /// Content-Language.
    pub language: Option<&'b [u8]>,
    /// The facts about its head.
    pub facts: StoredFacts,
    /// Seconds for which it is fresh.
    pub lifetime: u64,
    /// Seconds for which it may be used in another way once it is stale.
    pub stale_use: u64,
    /// Seconds for which the operator lets it be used after an error.
    pub grace: u64,
    /// Microseconds that the server took.
    pub took_us: u64,
    /// Its age when the snapshot was written.
    pub age: u64,
    /// Requests that it has answered.
    pub hits: u64,
    /// Its content.
    pub content: &'b [u8],
}

impl<'b> Record<'b> {
    /// Its age, so many seconds after the snapshot was written; `None`: it may not be used any more.
    pub fn age_after(&self, seconds: u64) -> Option<u64> {
        let age = self.age.saturating_add(seconds);
        (age < self.lifetime.saturating_add(self.stale_use)).then_some(age)
    }

    /// Whether it can be read again. The head is sent to clients as it is, so no line of it may end it.
    pub(super) fn is_sound(&self) -> bool {
        let is_line = |line: &[u8]| {
            let line = line.strip_suffix(b"\r\n");
            line.is_some_and(|line| {
                !line.is_empty() && !line.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0))
            })
        };
        let mut lines = self.head.split_inclusive(|&byte| byte == b'\n');
        self.head.starts_with(b"HTTP/1.1 ")
            && lines.all(is_line)
            && (100..=999).contains(&self.facts.status)
            && self.vary.is_empty() == self.secondary.is_empty()
    }

    pub(super) fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.rules);
        out.put_bytes(self.primary);
        out.put_bytes(self.secondary);
        out.put_list(&self.tags);
        out.put_list(&self.vary);
        out.put_bytes(self.head);
        out.put_optional_bytes(self.etag);
        out.put_optional_bytes(self.last_modified);
        out.put_optional_bytes(self.content_type.map(str::as_bytes));
        out.put_optional_bytes(self.language);
        put_facts(&self.facts, out);
        for number in [self.lifetime, self.stale_use, self.grace, self.took_us, self.age, self.hits]
        {
            out.put_number(number);
        }
        out.put_bytes(self.content);
    }

    /// Parses a record without its length and its check; `None`: it is none.
    pub fn parse(bytes: &'b [u8]) -> Option<Self> {
        let mut rest = Rest(bytes);
        let record = Self {
            rules: rest.array()?,
            primary: rest.bytes()?,
            secondary: rest.bytes()?,
            tags: rest.list(Rest::bytes)?,
            vary: rest.list(Rest::text)?,
            head: rest.bytes()?,
            etag: rest.optional(Rest::bytes)?,
            last_modified: rest.optional(Rest::bytes)?,
            content_type: rest.optional(Rest::text)?,
            language: rest.optional(Rest::bytes)?,
            facts: facts(&mut rest)?,
            lifetime: rest.number()?,
            stale_use: rest.number()?,
            grace: rest.number()?,
            took_us: rest.number()?,
            age: rest.number()?,
            hits: rest.number()?,
            content: rest.bytes()?,
        };
        (rest.0.is_empty() && record.is_sound()).then_some(record)
    }
}

fn put_facts(facts: &StoredFacts, out: &mut Vec<u8>) {
    let StoredFacts { status, control, date, last_modified } = facts;
    let StoredControl { no_cache, must_revalidate, has_s_maxage, immutable, .. } = *control;
    out.put_number(u64::from(*status));
    for flag in [no_cache, must_revalidate, has_s_maxage, immutable] {
        out.put_number(u64::from(flag));
    }
    for seconds in [control.stale_while_revalidate, control.stale_if_error] {
        out.put_optional_number(seconds.get().map(u64::from));
    }
    out.put_number(*date);
    out.put_optional_number(last_modified.get());
}

fn facts(rest: &mut Rest<'_>) -> Option<StoredFacts> {
    let seconds = |rest: &mut Rest<'_>| u32::try_from(rest.number()?).ok();
    Some(StoredFacts {
        status: u16::try_from(rest.number()?).ok()?,
        control: StoredControl {
            no_cache: rest.flag()?,
            must_revalidate: rest.flag()?,
            has_s_maxage: rest.flag()?,
            immutable: rest.flag()?,
            stale_while_revalidate: rest.optional(seconds)?.into(),
            stale_if_error: rest.optional(seconds)?.into(),
        },
        date: rest.number()?,
        last_modified: rest.optional(Rest::number)?.into(),
    })
}
