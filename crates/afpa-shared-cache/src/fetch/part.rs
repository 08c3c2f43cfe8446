//! Keeps parts of responses: the bytes of a 206, or of a 200 that broke off. They are kept beside the other parts of the
//! same representation, until these are all of it.

use std::sync::Arc;

use afpa_cache::{Moment, Object, Payload, Pinned};
use afpa_framework::Now;
use afpa_http::caching::condition::StoredValidators;
use afpa_http::caching::parts::{ContentRange, Most, NotAdded, Parts, are_of_one, are_strong};
use afpa_http::caching::store::NotStored;
use afpa_http::caching::{ResponseFacts, fields};
use afpa_proxy::response;

use crate::fetch::question::Question;
use crate::store::list::{Content, key_of, room_for};
use crate::store::partial::{Partial, Ranged};
use crate::store::stored::{Draft, StoredResponse, is};

/// Which part a 206 has. `None`: it has several, or does not say exactly which one.
fn part_of(response: &response::Response<'_, '_>) -> Option<ContentRange> {
    let lines = || response.end_to_end();
    let mut ranges = lines().filter(|(name, _)| is(name, "content-range"));
    let (Some((_, value)), None) = (ranges.next(), ranges.next()) else { return None };
    let several = lines().filter(|(name, _)| is(name, "content-type")).any(|(_, value)| {
        let kind = value.get(..MULTIPART.len()).unwrap_or_default();
        kind.eq_ignore_ascii_case(MULTIPART)
    });
    let part = ContentRange::parse(value).filter(|_| !several)?;
    response.announced().is_none_or(|length| length == part.length()).then_some(part)
}

const MULTIPART: &[u8] = b"multipart/byteranges";

impl Question<'_> {
    /// Whether a 206 may be kept, and as a part of what.
    pub(crate) fn judge_part(
        &self,
        response: &response::Response<'_, '_>,
        now: Now,
    ) -> Result<(Draft, ContentRange), NotStored> {
        let ranged = self.fetching.ranged.ok_or(NotStored::Status)?;
        let part = part_of(response).ok_or(NotStored::Part)?;
        if part.length() > self.cache.policy.largest as u64 {
            return Err(NotStored::TooLong);
        }
        let is_of_part = |name: &[u8]| is(name, "content-range") || fields::is_of_message(name);
        let lines = response.end_to_end().filter(move |(name, _)| !is_of_part(name));
        let about = self.circumstances(now);
        let draft = match ranged {
            Ranged::Plain => Draft::new(b"HTTP/1.1 200 OK", 200, lines, about),
            Ranged::IfRange => {
                let base = self.base().ok_or(NotStored::Part)?;
                let facts = ResponseFacts::of(200, lines.clone(), &self.cache.policy.targets);
                let mut tags = lines.clone().filter(|(name, _)| is(name, "etag"));
                let new = StoredValidators {
                    etag: tags.next().map(|(_, value)| value),
                    last_modified: facts.last_modified,
                    date: facts.date.unwrap_or_else(|| now.unix()),
                };
                if !are_of_one(&base.response.validators(), &new) {
                    return Err(NotStored::Part);
                }
                base.response.draft.freshened(lines, about)
            }
        };
        let (draft, facts) = draft?;
        self.judge_draft(&draft, &facts)?;
        Ok((draft, part))
    }

    fn base(&self) -> Option<&Partial> {
        self.fetching.base.as_ref()?.header().partial()
    }

    /// Keeps bytes of a representation of `complete` bytes. On a contradiction all parts are purged and the new one is
    /// dropped. A whole response stays.
    pub(crate) fn keep_part(
        &self,
        part: Part<'_>,
        now: Now,
    ) -> Option<Arc<Object<StoredResponse>>> {
        let Part { draft, variant, since, start, complete, data } = part;
        let cache = self.cache.responses.cache();
        let key = key_of(if draft.vary().is_empty() { self.fetch.key() } else { variant });
        let held = cache.get(&key);
        let held = held.as_ref().map(|held| held.header());
        if held.is_some_and(|held| held.response().is_some()) {
            return None;
        }
        let mut parts = match held.and_then(StoredResponse::partial) {
            Some(held) if are_of_one(&held.response.validators(), &draft.validators()) => {
                if held.parts.complete() != complete {
                    cache.purge(&key);
                    return None;
                }
                held.parts.clone()
            }
            _ => Parts::new(complete),
        };
        let largest = self.cache.policy.largest;
        let most = Most { pieces: self.cache.policy.parts, bytes: largest as u64 };
        let mut room = |all: &[&[u8]]| room_for(&self.cache.responses, all, largest);
        match parts.add(start, data, most, &mut room) {
            Ok(()) if parts.pieces().is_empty() => return None,
            Ok(()) => {}
            Err(NotAdded::Contradiction) => {
                cache.purge(&key);
                return None;
            }
            Err(NotAdded::Outside | NotAdded::NoRoom) => return None,
        }
        let whole = if parts.is_complete() { whole(&parts, &mut room) } else { None };
        let content = match whole {
            Some(bytes) => Content::Whole(Payload::Pinned(bytes), complete),
            None => Content::Parts(parts),
        };
        let place = self.place(variant, since);
        self.cache.responses.list(&self.cache.policy, &place, draft.clone(), content, now).ok()
    }

    /// Keeps the start of a response that broke off, if its validators identify the whole.
    pub(crate) fn keep_start(&self, part: Part<'_>, now: Now) {
        let is_useful = self.cache.policy.parts > 0 && !part.data.is_empty();
        if is_useful && part.draft.facts.status == 200 && are_strong(&part.draft.validators()) {
            drop(self.keep_part(part, now));
        }
    }
}

/// Bytes of a representation.
pub(crate) struct Part<'a> {
    /// The head of the whole.
    pub(crate) draft: &'a Draft,
    /// The key, if it varies.
    pub(crate) variant: &'a Arc<[u8]>,
    /// If it is purged after this moment, it is not kept.
    pub(crate) since: Moment,
    pub(crate) start: u64,
    /// Bytes of the whole.
    pub(crate) complete: u64,
    pub(crate) data: &'a [u8],
}

/// All pieces as one.
fn whole(
    parts: &Parts<Pinned>,
    room: &mut impl FnMut(&[&[u8]]) -> Option<Pinned>,
) -> Option<Pinned> {
    match parts.pieces() {
        [only] => Some(only.bytes.clone()),
        pieces => room(&pieces.iter().map(|piece| &*piece.bytes).collect::<Vec<_>>()),
    }
}
