//! The kept form of a response: its head, ready to be sent, and the facts that decide about its use.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use afpa_cache::{Key, Label, Pinned};
use afpa_framework::Now;
use afpa_http::HttpDate;
use afpa_http::caching::condition::StoredValidators;
use afpa_http::caching::freshness::Arrival;
use afpa_http::caching::parts::Parts;
use afpa_http::caching::reuse::Stored;
use afpa_http::caching::store::{NotStored, SetCookie};
use afpa_http::caching::{ResponseFacts, StoredFacts, Version, fields, vary};
use afpa_http::edits::FieldRules;
use afpa_http::syntax::list;

use crate::key::{group_label, tag_label};
use crate::policy::{CachePolicy, Life};
use crate::store::index::Index;
use crate::store::partial::Partial;
use crate::store::text::{Text, Value, Writer};

/// Header data of an object of the shared cache, of any kind.
#[derive(Debug)]
pub struct StoredResponse(Kind);

/// Most are responses. The others lie elsewhere in memory, so that a pointer that a response has anyway tells them
/// apart.
#[derive(Debug)]
enum Kind {
    Response(Response),
    Other(Box<Other>),
}

/// Objects that are no responses.
#[derive(Debug)]
enum Other {
    /// Responses of this URL vary: their keys go on with the values of these fields.
    Index(Index),
    /// Parts of a response.
    Partial(Partial),
}

/// A stored response.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) draft: Draft,
    /// Bytes of the content.
    pub(crate) len: u64,
    /// Bytes of its key that are the primary key.
    primary_len: u32,
    standing: Standing,
}

/// The state of a stored response that changes. The last bit is set when a soft purge has made the response stale; the
/// other bits hold the steady second until which a request validates it (they count 68 years).
#[derive(Debug, Default)]
struct Standing(AtomicU32);

impl Standing {
    const RECALLED: u32 = 1;

    fn recall(&self) {
        self.0.fetch_or(Self::RECALLED, Ordering::Release);
    }

    fn is_recalled(&self) -> bool {
        self.0.load(Ordering::Acquire) & Self::RECALLED != 0
    }

    /// Whether nobody validates it at `now`: the caller does then, until `until`.
    fn claim(&self, now: u64, until: u64) -> bool {
        let held = self.0.load(Ordering::Relaxed);
        let until = u32::try_from(until).unwrap_or(u32::MAX) << 1 | held & Self::RECALLED;
        let is_free = u64::from(held >> 1) <= now;
        is_free
            && self.0.compare_exchange(held, until, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Ends the claim to validate it.
    fn end_validation(&self) {
        self.0.fetch_and(Self::RECALLED, Ordering::Relaxed);
    }
}

/// A response whose head has arrived, and that may be stored.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    pub(crate) facts: StoredFacts,
    pub(crate) arrival: Arrival,
    /// Microseconds until the server's answer had begun, as far as a `u32` counts: 71 minutes.
    pub(crate) took_us: u32,
    pub(crate) life: Life,
    /// Its head, with the validators and what else is asked for.
    pub(crate) text: Text,
    /// Most responses have none of that.
    pub(crate) more: Option<Box<More>>,
}

/// The parts that few responses have.
#[derive(Clone, Debug)]
pub(crate) struct More {
    vary: Arc<[Box<str>]>,
    tags: Box<[Label]>,
}

impl More {
    /// `None`: the response has none of it.
    pub(crate) fn of(vary: Vec<Box<str>>, tags: Vec<Label>) -> Option<Box<Self>> {
        let has_more = !vary.is_empty() || !tags.is_empty();
        has_more.then(|| Box::new(Self { vary: vary.into(), tags: tags.into() }))
    }
}

impl StoredResponse {
    /// The response, if it is one.
    pub(crate) fn response(&self) -> Option<&Response> {
        match &self.0 {
            Kind::Response(response) => Some(response),
            Kind::Other(_) => None,
        }
    }

    /// The parts of a response, if that is what there is.
    pub(crate) fn partial(&self) -> Option<&Partial> {
        match self.other()? {
            Other::Partial(partial) => Some(partial),
            Other::Index(_) => None,
        }
    }

    /// The index of the responses of its URL, if this object is one.
    pub(crate) fn index(&self) -> Option<&Index> {
        match self.other()? {
            Other::Index(index) => Some(index),
            Other::Partial(_) => None,
        }
    }

    fn other(&self) -> Option<&Other> {
        match &self.0 {
            Kind::Other(other) => Some(other),
            Kind::Response(_) => None,
        }
    }

    /// The response, if it is one, or some parts of one.
    pub(crate) fn any_response(&self) -> Option<&Response> {
        self.response().or_else(|| self.partial().map(|partial| &partial.response))
    }

    /// A soft purge means it.
    pub(crate) fn recall(&self) {
        if let Some(response) = self.any_response() {
            response.recall();
        }
    }

    pub(crate) fn of(response: Response) -> Self {
        Self(Kind::Response(response))
    }

    pub(crate) fn parts(response: Response, parts: Parts<Pinned>) -> Self {
        Self(Kind::Other(Box::new(Other::Partial(Partial { response, parts }))))
    }

    pub(crate) fn indexing(names: Arc<[Box<str>]>) -> Self {
        Self(Kind::Other(Box::new(Other::Index(Index::new(names)))))
    }
}

impl Response {
    pub(crate) fn new(draft: Draft, len: u64, primary_len: usize) -> Self {
        let primary_len = u32::try_from(primary_len).unwrap_or(u32::MAX);
        Self { draft, len, primary_len, standing: Standing::default() }
    }

    /// Its key, split into the primary key and the rest.
    pub(crate) fn split<'k>(&self, key: &'k Key) -> Option<(&'k [u8], &'k [u8])> {
        key.path.split_at_checked(self.primary_len as usize)
    }

    /// How it is to be judged at a moment.
    pub(crate) fn at(&self, now: Now) -> Stored {
        let draft = &self.draft;
        Stored {
            control: draft.facts.control,
            lifetime: draft.life.lifetime.into(),
            age: draft.arrival.age(now.steady_ms() / 1000),
            purged: self.standing.is_recalled(),
            grace: draft.life.grace.into(),
        }
    }

    pub(crate) fn recall(&self) {
        self.standing.recall();
    }

    /// Whether the caller is the one to validate the response now, because no earlier claim is still valid.
    pub(crate) fn claim_validation(&self, now: Now, seconds: u64) -> bool {
        let now = now.steady_ms() / 1000;
        self.standing.claim(now, now.saturating_add(seconds.max(1)))
    }

    pub(crate) fn end_validation(&self) {
        self.standing.end_validation();
    }

    pub(crate) fn validators(&self) -> StoredValidators<'_> {
        self.draft.validators()
    }

    /// The facts that tell it from other versions.
    pub(crate) fn version(&self) -> Version<'_> {
        let (etag, last_modified) = (self.draft.etag(), self.draft.last_modified());
        Version { etag, last_modified, length: Some(self.len) }
    }
}

/// The facts that [`Draft::new`] needs beside the head.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Circumstances<'a> {
    pub(crate) policy: &'a CachePolicy,
    pub(crate) asked_at: Now,
    pub(crate) now: Now,
    /// Without its port.
    pub(crate) host: &'a [u8],
    /// The rules that give requests marks, which no response is kept with.
    pub(crate) rules: Option<&'a FieldRules>,
}

impl Draft {
    /// Seconds for which a response is kept: until nothing can be done with it any more. One with a validator is
    /// kept longer, because a server may say that it is still current.
    pub(crate) fn kept_for(&self) -> u32 {
        const VALIDATED: u32 = 24 * 3600;
        let useful = self.life.lifetime.saturating_sub(self.arrival.initial_age);
        let after = self.life.stale_use.max(if self.has_validator() { VALIDATED } else { 0 });
        useful.saturating_add(after)
    }

    /// Names of the fields that it varies by.
    pub(crate) fn vary(&self) -> &[Box<str>] {
        self.more.as_ref().map(|more| &*more.vary).unwrap_or_default()
    }

    /// The names of these fields, to be kept.
    pub(crate) fn names(&self) -> Arc<[Box<str>]> {
        self.more.as_ref().map(|more| Arc::clone(&more.vary)).unwrap_or_default()
    }

    /// The labels of its tags.
    pub(crate) fn tags(&self) -> &[Label] {
        self.more.as_ref().map(|more| &*more.tags).unwrap_or_default()
    }

    /// Status line and fields, without Age, Content-Length and the empty line.
    pub(crate) fn head(&self) -> &[u8] {
        self.text.head()
    }

    /// The head as a field section of HTTP/3, if that is kept.
    pub(crate) fn section(&self) -> Option<&[u8]> {
        self.text.section()
    }

    pub(crate) fn etag(&self) -> Option<&[u8]> {
        self.text.value(Value::ETag)
    }

    /// Last-Modified as the server wrote it.
    pub(crate) fn last_modified(&self) -> Option<&[u8]> {
        self.text.value(Value::LastModified)
    }

    pub(crate) fn content_type(&self) -> Option<&str> {
        self.text.content_type()
    }

    pub(crate) fn language(&self) -> Option<&[u8]> {
        self.text.value(Value::ContentLanguage)
    }

    pub(crate) fn validators(&self) -> StoredValidators<'_> {
        let StoredFacts { date, last_modified, .. } = self.facts;
        StoredValidators { etag: self.etag(), last_modified: last_modified.get(), date }
    }

    /// Whether a request to the server can ask whether the response is still current.
    pub(crate) fn has_validator(&self) -> bool {
        self.etag().is_some() || self.facts.last_modified.get().is_some()
    }

    /// A draft of a head: its status line without CRLF, and its end-to-end fields; with the facts by which it is
    /// judged.
    ///
    /// # Errors
    /// It varies by what no key can hold, or is too long.
    pub(crate) fn new<'b, F>(
        status_line: &[u8],
        status: u16,
        lines: F,
        about: Circumstances<'_>,
    ) -> Result<(Draft, ResponseFacts), NotStored>
    where
        F: Iterator<Item = (&'b [u8], &'b [u8])> + Clone,
    {
        let facts = ResponseFacts::of(status, lines.clone(), &about.policy.targets);
        Ok((Self::of(facts, status_line, lines, about)?, facts))
    }

    /// As [`new`](Self::new), when the facts are known.
    pub(crate) fn of<'b, F>(
        mut facts: ResponseFacts,
        status_line: &[u8],
        lines: F,
        about: Circumstances<'_>,
    ) -> Result<Draft, NotStored>
    where
        F: Iterator<Item = (&'b [u8], &'b [u8])> + Clone,
    {
        let Circumstances { policy, asked_at, now, host, rules } = about;
        let arrival =
            Arrival::of(&facts, asked_at.steady_ms() / 1000, now.unix(), now.steady_ms() / 1000);
        let values = |wanted: &'static str| {
            let lines = lines.clone().filter(move |(name, _)| is(name, wanted));
            lines.map(|(_, value)| value)
        };
        let names = match facts.varies {
            true => vary::names(values("vary")).ok_or(NotStored::VaryStar)?,
            false => Vec::new(),
        };
        let mut head = Writer::new(status_line).with_section(policy.http3);
        if facts.date.is_none() && values("date").next().is_none() {
            facts.date = Some(now.unix());
            head.put(b"Date", HttpDate::new(now.unix()).as_bytes());
        }
        let mut tags = Vec::new();
        for (name, value) in lines.clone() {
            let known = Value::of(name).filter(|known| !head.has(*known));
            let stripped = is(name, "set-cookie") && policy.set_cookie == SetCookie::Strip;
            let named = facts.control.has_fields
                && values("cache-control").any(|line| fields::is_named_by(line, name));
            let is_mark = rules.is_some_and(|rules| rules.is_mark(name));
            if stripped || named || is_mark || fields::is_left_out(name) {
                known.into_iter().for_each(|known| head.put_behind(known, value));
                continue;
            }
            match known {
                Some(known) => head.put_known(known, name, value),
                None => head.put(name, value),
            }
            let own = fields::tags(name, value);
            if is(name, "cache-groups") {
                tags.extend(
                    own.iter().take(MOST_TAGS).map(|group| group_label(host, group).into()),
                );
            }
            tags.extend(own.into_iter().take(MOST_TAGS).map(|tag| tag_label(tag).into()));
        }
        tags.truncate(MOST_TAGS);
        Ok(Draft {
            took_us: u32::try_from(now.steady_us.saturating_sub(asked_at.steady_us))
                .unwrap_or(u32::MAX),
            life: policy.life(&facts, now.unix()),
            text: head.finish().ok_or(NotStored::TooLong)?,
            more: More::of(names, tags),
            facts: StoredFacts::from(&facts),
            arrival,
        })
    }

    /// Writes the parts of the head that a 304 has, with its status line.
    pub(crate) fn put_not_modified(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"HTTP/1.1 304 Not Modified\r\n");
        let lines = self.head().split_inclusive(|&byte| byte == b'\n').skip(1);
        let name = |line: &[u8]| line.iter().position(|&byte| byte == b':');
        for line in lines {
            let name = name(line).and_then(|end| line.get(..end));
            if name.is_some_and(fields::is_in_not_modified) {
                out.extend_from_slice(line);
            }
        }
    }

    /// Bytes that it points at, roughly.
    pub(crate) fn bytes(&self) -> usize {
        let more = |more: &More| {
            // A piece of memory for each of them has its own counts.
            let names = more.vary.iter().map(|name| name.len() + 2 * size_of::<Box<str>>());
            let tags = more.tags.iter().map(|tag| tag.len() + 3 * size_of::<Label>());
            size_of::<More>() + names.sum::<usize>() + tags.sum::<usize>()
        };
        self.text.bytes() + self.more.as_deref().map_or(0, more)
    }

    /// The draft with the fields of a 304 in the place of its own (RFC 9111 section 3.2). A server without a clock
    /// sends no Date: then the 304 dates from its arrival (RFC 9110 section 6.6.1), and is not as old as the response
    /// that it confirms.
    pub(crate) fn freshened<'b, F>(
        &self,
        lines: F,
        about: Circumstances<'_>,
    ) -> Result<(Draft, ResponseFacts), NotStored>
    where
        F: Iterator<Item = (&'b [u8], &'b [u8])> + Clone,
    {
        // The server knows nothing of a coding that AFPA has added.
        let codes = about.policy.codes() && self.vary().iter().any(|name| **name == *CODINGS);
        let is_coded = codes && self.lines().any(|(name, _)| is(name, "content-encoding"));
        let new = lines.filter(move |(name, _)| {
            fields::is_updated(name) && !(is_coded && fields::is_of_bytes(name))
        });
        let replaced = |name: &[u8]| new.clone().any(|(other, _)| other.eq_ignore_ascii_case(name));
        let status_line = self.head().split(|&byte| byte == b'\n').next();
        let status_line = status_line.unwrap_or_default().trim_ascii_end();
        let own = self.lines().filter(|(name, _)| !is(name, "date") && !replaced(name));
        let mut all: Vec<(&[u8], &[u8])> = own.collect();
        for (name, value) in new.clone() {
            all.push((name, value));
        }
        let names = |line: &&[u8]| list(line).any(|name| is(name, CODINGS) || name == b"*");
        let mut vary = all.iter().filter(|(name, _)| is(name, "vary")).map(|(_, value)| value);
        if codes && !vary.any(names) {
            all.push((b"Vary", b"Accept-Encoding"));
        }
        let (draft, facts) =
            Draft::new(status_line, self.facts.status, all.iter().copied(), about)?;
        // A use saves the time of a whole answer, not that of a 304.
        Ok((Draft { took_us: self.took_us, ..draft }, facts))
    }

    /// Whether its content is the result of a coding that may give other bytes the next time, as that of AFPA and of other
    /// intermediaries, who make the entity tag weak then. No part of it fits one of another time.
    pub(crate) fn is_coded_anew(&self) -> bool {
        let is_strong = self.etag().is_some_and(|tag| !tag.starts_with(b"W/"));
        !is_strong && self.lines().any(|(name, _)| is(name, "content-encoding"))
    }

    /// The field lines of its head.
    fn lines(&self) -> impl Iterator<Item = (&[u8], &[u8])> + Clone {
        let lines = self.head().split(|&byte| byte == b'\n').skip(1);
        lines.filter_map(|line| {
            let at = line.iter().position(|&byte| byte == b':')?;
            Some((line.get(..at)?, line.get(at + 1..)?.trim_ascii()))
        })
    }

    /// Whether the validator of a 304 is that of this response (RFC 9111 section 4.3.4).
    pub(crate) fn is_meant_by<'b>(
        &self,
        mut lines: impl Iterator<Item = (&'b [u8], &'b [u8])>,
    ) -> bool {
        let etag = lines.find(|(name, _)| is(name, "etag")).map(|(_, value)| value);
        let bare = |tag: &[u8]| tag.strip_prefix(b"W/").unwrap_or(tag).to_vec();
        match (etag, self.etag()) {
            (Some(new), Some(own)) => bare(new) == bare(own),
            // A strong tag names a response, and not this one, which has none.
            (Some(new), None) => new.starts_with(b"W/"),
            (None, _) => true,
        }
    }
}

/// The field that AFPA adds to Vary where it compresses.
pub(crate) const CODINGS: &str = "accept-encoding";

/// Tags of one response; further ones are ignored.
const MOST_TAGS: usize = 256;

pub(crate) fn is(name: &[u8], known: &str) -> bool {
    name.eq_ignore_ascii_case(known.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use afpa_cache::Object;

    /// Each stored response takes so much beside its key, its labels, its head and its content.
    #[test]
    fn what_is_kept_of_a_response_is_small() {
        assert!(size_of::<Draft>() <= 104, "{} B", size_of::<Draft>());
        assert!(size_of::<StoredResponse>() <= 120, "{} B", size_of::<StoredResponse>());
        let object = size_of::<Object<StoredResponse>>();
        assert!(object <= 216, "{object} B");
    }

    #[test]
    fn one_validates_at_a_time_and_a_recall_stays() {
        let standing = Standing::default();
        assert!(standing.claim(10, 40) && !standing.claim(39, 50));
        standing.recall();
        assert!(!standing.claim(39, 50) && standing.claim(40, 50) && !standing.claim(49, 60));
        standing.end_validation();
        assert!(standing.is_recalled() && standing.claim(0, 30) && standing.is_recalled());
        assert!(!Standing::default().is_recalled());
    }
}
