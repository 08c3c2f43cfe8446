//! Replacement: which object goes when room is needed.
//!
//! A policy sees identities, sizes and touches, never an object; it reads no clock and draws no
//! random number, so a trace replays to the same victims every time ([`replay`]). The cache runs two
//! instances of the chosen one: over pinned objects (sizes in bytes) and over file-system objects
//! (sizes in descriptors).

pub mod auto;
mod hinted;
mod identity;
mod judge;
mod lfu;
mod lru;
mod modified_lru;
mod order;
pub mod replay;
mod s3_fifo;
mod structured;
mod terms;
mod trace;

use std::fmt;
use std::str::FromStr;

pub use hinted::Hinted;
pub use identity::ObjectId;
pub(crate) use identity::{ByPlace, Identities, Place};
pub use judge::Judge;
pub use lfu::Lfu;
pub use lru::Lru;
pub use modified_lru::ModifiedLru;
pub use s3_fifo::S3Fifo;
pub use structured::Structured;
pub use terms::{Family, Hint, Keep};
pub use trace::Trace;

/// An object as a policy sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Newcomer {
    /// Its identity. Policies have tables by place: places are to be small numbers, as [`ObjectId`] says.
    pub id: ObjectId,
    /// How much of the limit it uses.
    pub size: u64,
    /// Hash of its key: equal for two versions of one object, or when it comes back after an
    /// ejection, so that a policy may remember what it ejected.
    pub fingerprint: u32,
    /// The family of its content.
    pub family: Family,
    /// The configured hint.
    pub hint: Hint,
}

/// Chooses victims. Every operation is at most logarithmic in the number of objects.
pub trait Policy: Send {
    /// Takes in an object that was not there.
    fn insert(&mut self, newcomer: Newcomer);

    /// The object was used `count` times since the last report. Unknown identities are ignored: the
    /// object may have been dropped meanwhile.
    fn touch(&mut self, id: ObjectId, count: u32);

    /// Forgets an object that was dropped for another reason. Unknown identities are ignored.
    fn remove(&mut self, id: ObjectId);

    /// Chooses an object to make room for one of size `needed`, and forgets it. `None` when there is none, or
    /// none but those that are [kept always](Keep::Always).
    fn victim(&mut self, needed: u64) -> Option<ObjectId>;

    /// As [`Policy::victim`], but one that is kept always rather than none.
    fn last_resort(&mut self) -> Option<ObjectId> {
        self.victim(0)
    }

    /// Number of objects.
    fn len(&self) -> usize;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Panics when the policy contradicts itself. Linear: for tests.
    fn check_invariants(&self);
}

/// The policies there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PolicyKind {
    /// AFPA's own: the least recently used of the objects no smaller than the one being allocated.
    ModifiedLru,
    /// Least recently used.
    Lru,
    /// Least frequently used, with dynamic aging.
    Lfu,
    /// Three FIFO queues: one-hit wonders leave soon, so a scan does not flush the working set.
    #[default]
    S3Fifo,
    /// Classes by size and family, each with its share of the room and its own order.
    Structured,
}

impl PolicyKind {
    /// All policies.
    pub const ALL: [PolicyKind; 5] = [
        PolicyKind::ModifiedLru,
        PolicyKind::Lru,
        PolicyKind::Lfu,
        PolicyKind::S3Fifo,
        PolicyKind::Structured,
    ];

    /// The name that configuration and statistics use.
    pub const fn name(self) -> &'static str {
        match self {
            PolicyKind::ModifiedLru => "afpa-lru",
            PolicyKind::Lru => "lru",
            PolicyKind::Lfu => "lfu",
            PolicyKind::S3Fifo => "s3-fifo",
            PolicyKind::Structured => "structured",
        }
    }

    /// An empty instance.
    pub fn build(self) -> Box<dyn Policy> {
        match self {
            PolicyKind::ModifiedLru => Box::<ModifiedLru>::default(),
            PolicyKind::Lru => Box::<Lru>::default(),
            PolicyKind::Lfu => Box::<Lfu>::default(),
            PolicyKind::S3Fifo => Box::<S3Fifo>::default(),
            PolicyKind::Structured => Box::<Structured>::default(),
        }
    }

    /// An empty instance that heeds hints: `kept_room` is for objects that are kept always.
    pub fn build_hinted(self, kept_room: u64) -> Box<dyn Policy> {
        Box::new(Hinted::new(self.build(), kept_room))
    }
}

/// How the policy is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicySetting {
    /// This one, for good.
    Fixed(PolicyKind),
    /// The policy that [`Judge`] finds best, again and again.
    Auto,
}

impl From<PolicyKind> for PolicySetting {
    fn from(kind: PolicyKind) -> Self {
        PolicySetting::Fixed(kind)
    }
}

impl Policy for Box<dyn Policy> {
    fn insert(&mut self, newcomer: Newcomer) {
        (**self).insert(newcomer);
    }

    fn touch(&mut self, id: ObjectId, count: u32) {
        (**self).touch(id, count);
    }

    fn remove(&mut self, id: ObjectId) {
        (**self).remove(id);
    }

    fn victim(&mut self, needed: u64) -> Option<ObjectId> {
        (**self).victim(needed)
    }

    fn last_resort(&mut self) -> Option<ObjectId> {
        (**self).last_resort()
    }

    fn len(&self) -> usize {
        (**self).len()
    }

    fn check_invariants(&self) {
        (**self).check_invariants();
    }
}

impl fmt::Display for PolicyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for PolicyKind {
    type Err = UnknownPolicy;

    fn from_str(name: &str) -> Result<Self, UnknownPolicy> {
        let found = PolicyKind::ALL.into_iter().find(|kind| kind.name() == name);
        found.ok_or_else(|| UnknownPolicy(name.to_owned()))
    }
}

/// A name that belongs to no policy.
#[derive(Debug, thiserror::Error)]
#[error("unknown policy {0:?}; known are afpa-lru, lru, lfu, s3-fifo and structured")]
pub struct UnknownPolicy(String);

#[cfg(test)]
mod tests;
