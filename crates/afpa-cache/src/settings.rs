//! Limits of the cache, and its counts.

use std::time::Duration;

use crate::policy::{PolicyKind, PolicySetting};

/// Limits and choices. The limit on pinned bytes is the arena's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheSettings {
    /// Objects larger than this many bytes are not pinned: their payload stays in the file system.
    pub pin_threshold: usize,
    /// No object may take more than one part in this many of the arena.
    pub largest_share: usize,
    /// Descriptors that the listed objects keep open, together.
    pub open_files_limit: usize,
    /// Objects of any kind.
    pub objects_limit: usize,
    /// Bytes of what objects have beside their content: keys, header data, dependencies, entries in tables and views.
    /// As many bytes may pages have that were made for responses ([`Cache::charge_page`](crate::Cache::charge_page)).
    pub bookkeeping_limit: usize,
    /// Whether keys, header data and table entries of objects that have labels count against the limit of the arena, too.
    pub counts_all: bool,
    /// Age after which an object whose files are not watched is compared with its file again.
    pub max_age_unwatched: Duration,
    /// How long [`Cache::reserve`](crate::Cache::reserve) waits for ejected objects to be let go.
    pub release_wait: Duration,
    /// Which objects go first when room is needed.
    pub policy: PolicySetting,
    /// Per cent of the arena, and of the open files, that objects may take that are
    /// [kept always](crate::Keep::Always). At most 90.
    pub kept_percent: usize,
}

impl Default for CacheSettings {
    fn default() -> Self {
        CacheSettings {
            pin_threshold: 256 << 10,
            largest_share: 8,
            open_files_limit: 4096,
            // The limits of bytes are reached before.
            objects_limit: 1_000_000,
            bookkeeping_limit: 1 << 30,
            counts_all: false,
            max_age_unwatched: Duration::from_secs(2),
            release_wait: Duration::from_millis(50),
            policy: PolicySetting::Fixed(PolicyKind::default()),
            // Half of the room stays for everything that no hint names.
            kept_percent: 50,
        }
    }
}

/// The contents of the cache, and its counts since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStats {
    /// Objects in the table.
    pub objects: usize,
    /// Objects with at least one payload in the file system.
    pub file_objects: usize,
    /// Descriptors that these objects keep open.
    pub open_files: usize,
    /// Bytes of the arena in use, those of dropped objects that are still being sent included.
    pub pinned_bytes: usize,
    /// Bytes that may be in use.
    pub pinned_limit: usize,
    /// Bytes of what these have beside their content.
    pub bookkeeping: usize,
    /// Bytes that this may be.
    pub bookkeeping_limit: usize,
    /// Bytes of pages that were made for responses, and that these still hold or the table has.
    pub page_bytes: usize,
    /// Loads under way.
    pub filling: usize,
    /// Hits that views have reported ([`View::flush_touches`](crate::View::flush_touches)).
    pub hits: u64,
    /// Loads begun.
    pub fills: u64,
    /// Requests that waited for the load of another.
    pub waits: u64,
    /// Loads that were overtaken by a change of the files that they read.
    pub overtaken: u64,
    /// Objects dropped because something they depend on changed, or by a purge.
    pub invalidations: u64,
    /// Objects dropped to make room.
    pub ejections: u64,
    /// Times at which everything became suspect.
    pub suspects: u64,
    /// Objects that others of the same versions were put in place of.
    pub replacements: u64,
    /// Suspect objects that a check found unchanged.
    pub confirmations: u64,
    /// Objects that answered the requests that waited for them and were not listed, because a hint says so.
    pub unkept: u64,
    /// Objects that were dropped because they reached the age of their hint.
    pub expiries: u64,
}
