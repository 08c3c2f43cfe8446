//! Objects that are not made from files: they have labels, by which they are purged.
//!
//! A label is a byte string such as a URL or a tag; its meaning is the protocol module's affair. Other than a file, the
//! source of such an object cannot be watched, so only a purge says that it has changed. A purge concerns all objects
//! that were asked for before it, also those that arrive later: a request takes a [`Moment`] before it asks, and
//! [`Cache::list`](crate::Cache::list) refuses an object if one of its labels was purged after that moment.

use std::collections::VecDeque;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use crate::key::Key;
use crate::object::{Content, Payloads};
use crate::policy::{Family, Hint};
use crate::stamp::Coverage;

/// A point in the order of purges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(pub(crate) u64);

impl Moment {
    /// This moment, so many purges later.
    pub fn after(self, purges: u64) -> Self {
        Self(self.0.saturating_add(purges))
    }
}

/// A label, shared by the requests for an object and the index that finds it.
pub type Label = Arc<[u8]>;

/// The byte with which each label ends, and which is nowhere else in it.
pub const END: u8 = b'\n';

/// The label with which a key begins.
pub fn label_of(key: &[u8]) -> &[u8] {
    let at = key.iter().position(|&byte| byte == END);
    at.and_then(|at| key.get(..=at)).unwrap_or(key)
}

/// Which objects are meant by a purge.
#[derive(Clone)]
pub enum Labels {
    /// Objects with this label, which ends as labels do.
    Is(Box<[u8]>),
    /// Objects with a label that begins so.
    BeginWith(Box<[u8]>),
    /// Objects with a label that fits. Every label is looked at.
    Fit(LabelRule),
}

/// Whether a label is meant.
pub type LabelRule = Arc<dyn Fn(&[u8]) -> bool + Send + Sync>;

impl Labels {
    /// Whether a label is meant.
    pub fn fits(&self, label: &[u8]) -> bool {
        match self {
            Labels::Is(wanted) => **wanted == *label,
            Labels::BeginWith(prefix) => label.starts_with(prefix),
            Labels::Fit(fits) => fits(label),
        }
    }
}

/// An object that is to be listed.
#[derive(Debug)]
pub struct Labelled<H> {
    /// Its name. It begins with a label, and the index holds that as a part of the key.
    pub key: Key,
    /// Further labels. None may begin with a slash.
    pub labels: Vec<Label>,
    /// Header data of the protocol module.
    pub header: H,
    /// Bytes that this takes up beside the arena, roughly.
    pub header_bytes: usize,
    /// Its bytes, if it has any.
    pub payloads: Payloads,
    /// The family, for the replacement policy.
    pub family: Family,
    /// The hint, for the replacement policy; its expiry is the object's life.
    pub hint: Hint,
    /// A moment before its source was asked.
    pub since: Moment,
}

impl<H> Labelled<H> {
    pub(crate) fn into_content(self) -> (Key, Vec<Label>, Content<H>) {
        let Labelled { key, labels, header, header_bytes, payloads, family, hint, .. } = self;
        let labelled: usize = labels.iter().map(|label| label.len() + LABEL_COST).sum();
        let header_bytes = header_bytes + labelled;
        let (stamp, coverage) = (None, Coverage::Watched);
        let content = Content { header, header_bytes, payloads, stamp, coverage, family, hint };
        (key, labels, content)
    }
}

/// Index entry, place among the others of the label, and reference counts of one further label.
const LABEL_COST: usize = 160;

/// Where an object that is to be listed comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    Source,
    /// Another process, where it had so many hits.
    Restored(u64),
}

impl fmt::Debug for Labels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Labels::Is(label) => write!(f, "{}", label.escape_ascii()),
            Labels::BeginWith(prefix) => write!(f, "{}...", prefix.escape_ascii()),
            Labels::Fit(_) => f.write_str("those that fit"),
        }
    }
}

/// The latest purges, so that an object that was asked for before one of them is not listed after it.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    entries: VecDeque<(u64, Purged)>,
    /// How many of them are rules.
    rules: usize,
    hasher: RandomState,
    /// The purges up to this one are not in it any more.
    forgotten: u64,
}

/// A purge. The label of a purge about one is not kept: clients choose it where their requests purge a URL, and it may
/// be long. Another label with the same hash counts as purged, too, which costs no more than an object that is not
/// listed. For the same reason a long beginning of labels is cut.
#[derive(Debug)]
enum Purged {
    Is { hash: u64, first: u8 },
    Others(Labels),
}

/// Purges that are remembered. An object that was asked for before the oldest of them is not listed, whatever its
/// labels.
pub(crate) const REMEMBERED: usize = 16_384;
/// How many of them may be rules: one is as long as the URL that it is about.
const REMEMBERED_RULES: usize = 256;
/// Bytes that are remembered of a beginning of labels.
const BEGINNING: usize = 256;

impl Journal {
    pub(crate) fn add(&mut self, number: u64, labels: Labels) {
        let purged = match labels {
            Labels::Is(label) => Purged::Is {
                hash: self.hasher.hash_one(&*label),
                first: label.first().copied().unwrap_or_default(),
            },
            Labels::BeginWith(prefix) => {
                let kept = prefix.get(..BEGINNING).map(Box::from);
                Purged::Others(Labels::BeginWith(kept.unwrap_or(prefix)))
            }
            rule @ Labels::Fit(_) => {
                self.rules += 1;
                Purged::Others(rule)
            }
        };
        self.entries.push_back((number, purged));
        while self.entries.len() > REMEMBERED || self.rules > REMEMBERED_RULES {
            let Some((oldest, purged)) = self.entries.pop_front() else { break };
            self.rules -= usize::from(matches!(purged, Purged::Others(Labels::Fit(_))));
            self.forgotten = oldest;
        }
    }

    /// Bytes of labels that it holds, apart from those of rules.
    #[cfg(test)]
    fn bytes(&self) -> usize {
        let held = |(_, purged): &(u64, Purged)| match purged {
            Purged::Others(Labels::BeginWith(prefix)) => prefix.len(),
            _ => 0,
        };
        self.entries.iter().map(held).sum()
    }

    /// Whether a purge after `since` is about one of `labels`, or `also` says so of the beginning of a purged label.
    pub(crate) fn means(
        &self,
        since: Moment,
        labels: &[&[u8]],
        also: &dyn Fn(&[u8]) -> bool,
    ) -> bool {
        if since.0 < self.forgotten {
            return true;
        }
        let mut later = self.entries.iter().rev().take_while(|(number, _)| *number > since.0);
        let mut hashes = Vec::new();
        later.any(|(_, purged)| match purged {
            Purged::Is { hash, first } => {
                if hashes.is_empty() {
                    hashes.extend(labels.iter().map(|label| self.hasher.hash_one(*label)));
                }
                also(&[*first]) || hashes.contains(hash)
            }
            Purged::Others(purged) => {
                let also = matches!(purged, Labels::BeginWith(text) if also(text));
                also || labels.iter().any(|label| purged.fits(label))
            }
        })
    }
}

#[cfg(test)]
mod tests;
