//! The last order to deny that the log has shown for each prefix. The log keeps no other one, so it is all that tells the sender
//! of an order whether that order is there, or was and had to make room.

use std::collections::BTreeMap;

use crate::follower::Position;
use crate::orders::Queued;

/// Prefixes that are remembered. An order for another one counts as not in the log, and has no place there that is known.
const MOST: usize = 100_000;

/// The last order for each subject.
#[derive(Debug, Default)]
pub(crate) struct Shown {
    last: BTreeMap<String, (Option<String>, Position)>,
    /// There were more than are remembered.
    has_forgotten: bool,
}

impl Shown {
    /// An order with this id, which older versions leave out, is in the log for a subject.
    pub(crate) fn note(&mut self, subject: String, id: Option<String>, at: Position) {
        self.last.insert(subject, (id, at));
        if self.last.len() > MOST {
            self.last.pop_first();
            self.has_forgotten = true;
        }
    }

    /// The servers have taken an order with this id there, which this machine may not have read yet.
    pub(crate) fn taken(&mut self, subject: String, id: &str, at: Position) {
        let known = self.last.get(&subject).map(|(_, known)| (known.log, known.sequence));
        if known.is_none_or(|known| known < (at.log, at.sequence)) {
            self.note(subject, Some(id.to_owned()), at);
        }
    }

    /// The number of the last order for a subject in a log; 0: it has none. `None`: nobody remembers.
    pub(crate) fn last(&self, subject: &str, log: u64) -> Option<u64> {
        let known = self.last.get(subject).map(|(_, at)| *at);
        match known.filter(|at| at.log == log) {
            Some(at) => Some(at.sequence),
            None => (!self.has_forgotten).then_some(0),
        }
    }

    /// The place by which an order that may have been sent is settled: its own, or that of one that came after it was sent.
    /// `None`: the log never had it.
    pub(crate) fn settles(&self, queued: &Queued) -> Option<Position> {
        let since = queued.since?;
        let (id, at) = self.last.get(&queued.order.subject())?;
        let is_there = id.as_ref() == Some(&queued.id);
        let is_later = (at.log, at.sequence) > (since.log, since.sequence);
        (is_there || is_later).then_some(*at)
    }
}
