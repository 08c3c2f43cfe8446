//! A place in a log, and what the messages that come mean there.
//!
//! ```text
//!            ┌── everything since the place is there ──> Follower ── deliver ──> Due ── done ──> Follower
//!  begin ────┤                                               │
//!            └── something is missing ──> Unflushed ─ flushed┘
//! ```
//!
//! A place moves by [`Follower::done`] alone, which takes the [`Due`] of an order that was carried out; and a follower
//! after a gap comes from [`Unflushed::flushed`] alone. So no member can claim a place before it has done what leads there.

use serde::{Deserialize, Serialize};

/// The logs of a fleet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Log {
    /// Orders to purge: each matters, and they are kept for some time. A member that has missed one flushes.
    Purges,
    /// Orders to deny: the last one for each prefix matters, and is kept. Gaps are where others were.
    Bans,
}

impl Log {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Purges, Self::Bans];

    /// Its place among them.
    pub(crate) const fn index(self) -> usize {
        match self {
            Self::Purges => 0,
            Self::Bans => 1,
        }
    }
}

/// A place in a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// When the log was made, in nanoseconds since the Unix epoch: another one begins to count anew.
    pub log: u64,
    /// The number of the last message up to which everything is done.
    pub sequence: u64,
}

impl Position {
    /// Whether a member that is here has carried out the message at `order`.
    pub fn is_at(&self, order: &Position) -> bool {
        self.log == order.log && self.sequence >= order.sequence
    }
}

/// A log, as its server describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// When it was made.
    pub log: u64,
    /// The number of the first message that is still there; one more than `last` if none is.
    pub first: u64,
    /// The number of the last message.
    pub last: u64,
}

/// A member's place in one log.
#[derive(Debug)]
pub struct Follower {
    kind: Log,
    position: Position,
}

/// A member that cannot know what it has missed.
#[derive(Debug)]
#[must_use = "kept answers may be older than a purge"]
pub struct Unflushed(Follower);

/// How a member begins.
#[derive(Debug)]
pub enum Begun {
    /// It goes on.
    Follows(Follower),
    /// It flushes first.
    Missed(Unflushed),
}

/// A message that is to be carried out.
#[derive(Debug)]
#[must_use = "the place moves when it is done"]
pub struct Due {
    sequence: u64,
    /// Messages before it are missing: all kept answers go first.
    pub is_after_gap: bool,
}

impl Follower {
    /// Begins at the place that is `kept`, in a log that was `found` just now.
    pub fn begin(kind: Log, kept: Option<Position>, found: Found) -> Begun {
        let kept = kept.filter(|kept| kept.log == found.log && kept.sequence <= found.last);
        let at = |sequence| Follower { kind, position: Position { log: found.log, sequence } };
        match (kind, kept) {
            (Log::Purges, Some(kept)) if kept.sequence.saturating_add(1) >= found.first => {
                Begun::Follows(at(kept.sequence))
            }
            (Log::Purges, _) => Begun::Missed(Unflushed(at(found.last))),
            (Log::Bans, kept) => {
                let before = found.first.saturating_sub(1);
                Begun::Follows(at(kept.map_or(0, |kept| kept.sequence).max(before)))
            }
        }
    }

    /// Everything up to here is done.
    pub fn position(&self) -> Position {
        self.position
    }

    /// The number of the message that comes next.
    pub fn next(&self) -> u64 {
        self.position.sequence.saturating_add(1)
    }

    /// A message came. `None`: it is done already.
    pub fn deliver(&self, sequence: u64) -> Option<Due> {
        let is_after_gap = self.kind == Log::Purges && sequence > self.next();
        (sequence > self.position.sequence).then_some(Due { sequence, is_after_gap })
    }

    /// It was carried out.
    pub fn done(&mut self, due: Due) {
        self.position.sequence = self.position.sequence.max(due.sequence);
    }
}

impl Due {
    /// Its number in the log.
    pub(crate) fn sequence(&self) -> u64 {
        self.sequence
    }
}

impl Unflushed {
    /// All kept answers have gone since the log was found.
    pub fn flushed(self) -> Follower {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(log: u64, sequence: u64) -> Option<Position> {
        Some(Position { log, sequence })
    }

    /// The place after the beginning, and whether a flush comes before it.
    fn begin(kind: Log, kept: Option<Position>, found: (u64, u64, u64)) -> (u64, bool) {
        let (log, first, last) = found;
        match Follower::begin(kind, kept, Found { log, first, last }) {
            Begun::Follows(follower) => (follower.position().sequence, false),
            Begun::Missed(unflushed) => (unflushed.flushed().position().sequence, true),
        }
    }

    #[test]
    fn a_member_goes_on_where_nothing_is_missing_and_flushes_otherwise() {
        let begin = |kept, found| self::begin(Log::Purges, kept, found);
        assert_eq!(begin(at(7, 5), (7, 1, 9)), (5, false));
        assert_eq!(begin(at(7, 5), (7, 6, 9)), (5, false), "the next one is the first");
        assert_eq!(begin(at(7, 5), (7, 7, 9)), (9, true), "6 has expired");
        assert_eq!(begin(at(7, 9), (7, 10, 9)), (9, false), "all have expired, and all are done");
        assert_eq!(begin(at(7, 8), (7, 10, 9)), (9, true));
        assert_eq!(begin(at(6, 5), (7, 1, 9)), (9, true), "another log");
        assert_eq!(begin(at(7, 10), (7, 1, 9)), (9, true), "an older copy of the log");
        assert_eq!(begin(None, (7, 1, 9)), (9, true));
        assert_eq!(begin(None, (7, 1, 0)), (0, true));
    }

    #[test]
    fn all_bans_are_read_by_whoever_has_none() {
        let begin = |kept, found| self::begin(Log::Bans, kept, found);
        assert_eq!(begin(None, (7, 4, 9)), (3, false));
        assert_eq!(begin(at(7, 5), (7, 4, 9)), (5, false));
        assert_eq!(begin(at(7, 5), (7, 7, 9)), (6, false));
        assert_eq!(begin(at(6, 5), (7, 4, 9)), (3, false));
        assert_eq!(begin(at(7, 10), (7, 4, 9)), (3, false));
    }

    #[test]
    fn a_place_moves_when_something_is_done() {
        let found = Found { log: 1, first: 1, last: 3 };
        let Begun::Follows(mut follower) = Follower::begin(Log::Purges, at(1, 3), found) else {
            panic!("nothing is missing");
        };
        assert!(follower.deliver(3).is_none() && follower.deliver(0).is_none());
        let due = follower.deliver(4).unwrap();
        assert!(!due.is_after_gap && follower.position().sequence == 3);
        follower.done(due);
        let due = follower.deliver(6).unwrap();
        assert!(due.is_after_gap);
        follower.done(due);
        assert_eq!(follower.position(), Position { log: 1, sequence: 6 });
    }

    #[test]
    fn a_place_holds_for_its_own_log() {
        let order = Position { log: 2, sequence: 5 };
        assert!(Position { log: 2, sequence: 5 }.is_at(&order));
        assert!(!Position { log: 2, sequence: 4 }.is_at(&order));
        assert!(!Position { log: 1, sequence: 9 }.is_at(&order));
    }
}
