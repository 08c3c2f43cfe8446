//! Reads the snapshot of another process, and goes on with its answers.

use std::collections::HashMap;
use std::io::{self, Read, Seek};

use afpa_cache::{Label, Moment, Payload};
use afpa_framework::Now;
use afpa_http::caching::control::bounded;
use afpa_http::caching::freshness::Arrival;
use afpa_http::caching::snapshot::{Broken, Clocks, Decoder, Piece, Record};

use crate::key::LONGEST;
use crate::policy::Life;
use crate::store::list::{Content, ListPlace};
use crate::store::responses::{Responses, Scope};
use crate::store::save::digest;
use crate::store::stored::{Draft, More};
use crate::store::text::{Text, Value, Writer};

/// The answers of a snapshot, counted by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Restored {
    /// Answers that are kept.
    pub taken: u64,
    /// Answers that may not be used any more.
    pub stale: u64,
    /// Answers that no request set keeps by the same rules any more.
    pub other_rules: u64,
    /// Answers of which there is a newer one, or that were purged since the start.
    pub overtaken: u64,
    /// Answers without room.
    pub no_room: u64,
}

impl Restored {
    /// All answers.
    pub fn all(&self) -> u64 {
        let Self { taken, stale, other_rules, overtaken, no_room } = self;
        taken + stale + other_rules + overtaken + no_room
    }
}

/// Why a snapshot is not used.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// It has changed since it was written, or its age is not known.
    #[error(transparent)]
    Broken(#[from] Broken),
    /// It cannot be read.
    #[error("it cannot be read: {0}")]
    Io(#[from] io::Error),
}

/// The present: by all clocks that matter.
#[derive(Clone, Copy, Debug)]
pub struct Present {
    /// The clocks that snapshots know.
    pub clocks: Clocks,
    /// The clocks of this process.
    pub now: Now,
    /// An answer that is purged from this moment on is not kept.
    pub since: Moment,
}

impl Responses {
    /// Goes on with the answers of a snapshot of `len` bytes. It reads the snapshot twice: no answer is used before all
    /// of it was found unchanged since it was written. Blocks: for a thread of its own.
    ///
    /// # Errors
    /// [`Refused`], before anything was used; or when the file has changed between the first reading and the second one.
    pub fn restore<S: Read + Seek>(
        &self,
        source: &mut S,
        len: usize,
        present: &Present,
    ) -> Result<Restored, Refused> {
        source.rewind()?;
        let mut seconds = 0;
        read(source, len, |piece| {
            if let Piece::Begin(written) = piece {
                seconds = written.seconds_until(&present.clocks)?;
            }
            Ok(())
        })?;
        let mut scopes = HashMap::new();
        self.each_scope(|rules, scope| {
            scopes.insert(digest(rules), scope.clone());
        });
        let mut restored = Restored::default();
        source.rewind()?;
        read(source, len, |piece| {
            if let Piece::Record(record) = piece {
                let count = match (scopes.get(&record.rules), record.age_after(seconds)) {
                    (None, _) => &mut restored.other_rules,
                    (_, None) => &mut restored.stale,
                    (Some(scope), Some(age)) => {
                        match self.take_over(&record, age, scope, present) {
                            Taken::Kept => &mut restored.taken,
                            Taken::Overtaken => &mut restored.overtaken,
                            Taken::NoRoom => &mut restored.no_room,
                        }
                    }
                };
                *count += 1;
            }
            Ok(())
        })?;
        Ok(restored)
    }

    fn take_over(&self, record: &Record<'_>, age: u64, scope: &Scope, present: &Present) -> Taken {
        let now = present.now;
        let primary = [record.primary, &scope.number.to_le_bytes()].concat();
        let variant = [&primary, record.secondary].concat();
        if variant.len() > LONGEST {
            return Taken::NoRoom;
        }
        // A server has said since that its answer is not to be kept.
        if self.passes().has(self.hash(&primary), now.steady_ms() / 1000) {
            return Taken::Overtaken;
        }
        let Some(content) = self.room_without_ejecting(record.content) else {
            return Taken::NoRoom;
        };
        let (primary, variant) = (&primary.into(), &variant.into());
        let place = ListPlace { primary, variant, since: present.since };
        let Some(draft) = draft(record, scope.policy.http3, age, now) else { return Taken::NoRoom };
        match self.list_restored(&scope.policy, &place, (draft, content), record.hits, now) {
            true => Taken::Kept,
            false => Taken::Overtaken,
        }
    }

    /// Room that is taken without ejecting: objects in memory are newer, and those restored earlier were used more.
    fn room_without_ejecting(&self, bytes: &[u8]) -> Option<Content> {
        let cache = self.cache();
        // A response that varies has an index, too.
        if cache.stats().objects + 2 > cache.settings().objects_limit {
            return None;
        }
        if bytes.is_empty() {
            return Some(Content::Nothing);
        }
        let mut room = cache.arena().allocate(bytes.len())?;
        room.copy_from_slice(bytes);
        Some(Content::Whole(Payload::Pinned(room.freeze()), bytes.len() as u64))
    }
}

enum Taken {
    Kept,
    Overtaken,
    NoRoom,
}

/// The response of a record; `None`: its head is longer than one that is kept.
fn draft(record: &Record<'_>, http3: bool, age: u64, now: Now) -> Option<Draft> {
    let life = Life {
        lifetime: bounded(record.lifetime),
        stale_use: bounded(record.stale_use),
        grace: bounded(record.grace),
    };
    let vary = record.vary.iter().copied().map(Box::from).collect();
    let tags = record.tags.iter().copied().map(Label::from).collect();
    Some(Draft {
        facts: record.facts,
        arrival: Arrival::at_age(age, now.steady_ms() / 1000),
        took_us: u32::try_from(record.took_us).unwrap_or(u32::MAX),
        life,
        text: text(record, http3)?,
        more: More::of(vary, tags),
    })
}

fn text(record: &Record<'_>, http3: bool) -> Option<Text> {
    let mut text = Writer::after(record.head).with_section(http3);
    for (value, bytes) in [
        (Value::ETag, record.etag),
        (Value::LastModified, record.last_modified),
        (Value::ContentType, record.content_type.map(str::as_bytes)),
        (Value::ContentLanguage, record.language),
    ] {
        bytes.into_iter().for_each(|bytes| text.put_behind(value, bytes));
    }
    text.finish()
}

/// Shows the pieces of a snapshot of `len` bytes, up to its end.
fn read(
    source: &mut impl Read,
    len: usize,
    mut show: impl FnMut(Piece<'_>) -> Result<(), Broken>,
) -> Result<(), Refused> {
    let mut decoder = Decoder::new(len);
    let mut bytes = Vec::new();
    loop {
        let wanted = decoder.wants();
        bytes.clear();
        // At the end nothing is wanted: a read of one byte tells whether anything follows.
        source.by_ref().take(wanted.max(1) as u64).read_to_end(&mut bytes)?;
        if wanted == 0 {
            return if bytes.is_empty() { Ok(()) } else { Err(Broken::Longer.into()) };
        }
        show(decoder.take(&bytes)?)?;
    }
}

#[cfg(test)]
mod tests;
