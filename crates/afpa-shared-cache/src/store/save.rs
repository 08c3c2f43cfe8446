//! Writes the kept answers as a snapshot ([`afpa_http::caching::snapshot`]), with which the next process begins.

use std::collections::HashMap;
use std::hash::Hash as _;
use std::io;

use afpa_cache::{Object, Payload};
use afpa_framework::Now;
use afpa_http::caching::snapshot::{BEGIN_LEN, Clocks, END_LEN, Record, Writer};
use siphasher::sip128::{Hasher128 as _, SipHasher13};

use crate::key::SCOPE_LEN;
use crate::store::responses::Responses;
use crate::store::stored::{Response, StoredResponse};

impl Responses {
    /// Writes a snapshot of at most `most` bytes: the answers that may still be used, those with most hits first. Parts
    /// are left out, and so are answers that a soft purge has made stale. Returns how many answers there are in it.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn save(
        &self,
        clocks: &Clocks,
        now: Now,
        most: usize,
        out: &mut dyn io::Write,
    ) -> io::Result<u64> {
        let mut rules = HashMap::new();
        self.each_scope(|text, scope| {
            rules.insert(scope.number, digest(text));
        });
        let mut bytes = Vec::new();
        let mut writer = Writer::begin(clocks, &mut bytes);
        let mut left = most.saturating_sub(BEGIN_LEN + END_LEN);
        for (object, hits) in self.cache().by_hits() {
            // The size of the content already shows of most objects that they are too long.
            if object.pinned_bytes() > left || object.is_dropped() {
                continue;
            }
            let before = bytes.len();
            if let Some(record) = record(&object, hits, now, &rules)
                && writer.put(&record, left, &mut bytes)
            {
                left = left.saturating_sub(bytes.len() - before);
                out.write_all(&bytes)?;
                bytes.clear();
            }
        }
        let records = writer.end(&mut bytes);
        out.write_all(&bytes)?;
        Ok(records)
    }
}

/// A digest that identifies rules in any process.
pub(crate) fn digest(rules: &str) -> [u8; 16] {
    let mut hasher = SipHasher13::new();
    rules.hash(&mut hasher);
    hasher.finish128().as_bytes()
}

/// An object as a record; `None`: it is left out.
fn record<'o>(
    object: &'o Object<StoredResponse>,
    hits: u64,
    now: Now,
    rules: &HashMap<u32, [u8; 16]>,
) -> Option<Record<'o>> {
    let response = object.header().response()?;
    let (primary, secondary) = response.split(object.key())?;
    let (primary, scope) = primary.split_last_chunk::<SCOPE_LEN>()?;
    let draft = &response.draft;
    let stored = response.at(now);
    let record = Record {
        rules: *rules.get(&u32::from_le_bytes(*scope))?,
        primary,
        secondary,
        tags: draft.tags().iter().map(|tag| &**tag).collect(),
        vary: draft.vary().iter().map(|name| &**name).collect(),
        head: draft.head(),
        etag: draft.etag(),
        last_modified: draft.last_modified(),
        content_type: draft.content_type(),
        language: draft.language(),
        facts: draft.facts,
        lifetime: draft.life.lifetime.into(),
        stale_use: draft.life.stale_use.into(),
        grace: draft.life.grace.into(),
        took_us: draft.took_us.into(),
        age: stored.age,
        hits,
        content: content(object, response)?,
    };
    let is_of_use = !stored.purged && record.age_after(0).is_some();
    is_of_use.then_some(record)
}

fn content<'o>(object: &'o Object<StoredResponse>, response: &Response) -> Option<&'o [u8]> {
    let content = match object.payloads() {
        [] => &[][..],
        [Payload::Pinned(bytes)] => bytes,
        _ => return None,
    };
    (content.len() as u64 == response.len).then_some(content)
}
