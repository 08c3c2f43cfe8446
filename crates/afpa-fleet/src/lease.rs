//! A lease: of all machines one alone holds it, and does something for the fleet while it does.
//!
//! ```text
//! record at the servers, which changes only where its writer names the revision that it replaces:
//!
//!   absent or given back ──► own ──► renewed, a third of a term after each other ──► given back
//!                             ▲
//!   somebody else's, and unchanged for a term, as this machine has seen it
//! ```
//!
//! No clock is compared with that of another machine. A process that waits measures how long a revision has stayed, and a
//! holder counts from the moment before it has asked. It stops to hold before another one can begin. A holder that has slept, or whose
//! words come late, is fenced by the revision: its write is refused.

use std::time::Duration;

/// A record that stays unchanged for so long is nobody's.
pub const TERM: Duration = Duration::from_secs(15);

/// A holder renews its lease so long after it has asked for it.
const RENEW: Duration = Duration::from_secs(5);

/// So long after it has asked, a holder is certain that nobody else holds the lease.
const CERTAIN: Duration = Duration::from_secs(10);

/// The lease, as one process of one machine knows it. Times are those of the process, and never go back.
#[derive(Clone, Debug)]
pub struct Lease {
    own: String,
    seen: Option<Seen>,
    /// When it asked for the lease that it has.
    asked: Option<Duration>,
}

#[derive(Clone, Debug)]
struct Seen {
    /// 0: there is no record.
    revision: u64,
    holder: String,
    /// When this revision was first seen.
    since: Duration,
}

impl Lease {
    /// Of the process with this random word.
    pub fn new(own: String) -> Self {
        Self { own, seen: None, asked: None }
    }

    /// The process.
    pub fn own(&self) -> &str {
        &self.own
    }

    /// A record was read; revision 0: there is none. An older one comes from a server that is behind, and says nothing.
    /// Whether it was news.
    pub fn read(&mut self, revision: u64, holder: &str, now: Duration) -> bool {
        let known = self.seen.as_ref().map(|seen| seen.revision);
        if known.is_some_and(|known| known >= revision && (known, revision) != (0, 0)) {
            return false;
        }
        if holder != self.own {
            self.asked = None;
        }
        let since = match &self.seen {
            Some(seen) if seen.revision == revision => seen.since,
            _ => now,
        };
        self.seen = Some(Seen { revision, holder: holder.to_owned(), since });
        known != Some(revision)
    }

    /// The revision that a write of this process would replace now; `None`: it has nothing to write, or may not.
    pub fn attempt(&self, now: Duration) -> Option<u64> {
        let seen = self.seen.as_ref()?;
        let is_due = match &seen.holder {
            holder if *holder == self.own => {
                self.asked.is_none_or(|asked| now.saturating_sub(asked) >= RENEW)
            }
            holder => holder.is_empty() || now.saturating_sub(seen.since) >= TERM,
        };
        is_due.then_some(seen.revision)
    }

    /// The revision that this process may replace because it holds the lease.
    pub fn held_at(&self, now: Duration) -> Option<u64> {
        let revision = self.seen.as_ref()?.revision;
        self.holds(now).then_some(revision)
    }

    /// A write that began at `asked` was taken.
    pub fn wrote(&mut self, revision: u64, asked: Duration, now: Duration) {
        self.seen = Some(Seen { revision, holder: self.own.clone(), since: now });
        self.asked = Some(asked);
    }

    /// The lease was given back by a write.
    pub fn gave_back(&mut self, revision: u64, now: Duration) {
        self.seen = Some(Seen { revision, holder: String::new(), since: now });
        self.asked = None;
    }

    /// A write was refused, or nobody knows its fate: the record is to be read anew. It may be that of other servers, where
    /// revisions have begun anew.
    pub fn lost(&mut self) {
        (self.seen, self.asked) = (None, None);
    }

    /// Whether this process holds the lease, and nobody else does.
    pub fn holds(&self, now: Duration) -> bool {
        self.asked.is_some_and(|asked| now.saturating_sub(asked) < CERTAIN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_lease_is_taken_when_it_is_free_and_renewed_while_it_is_held() {
        let mut lease = Lease::new("a".to_owned());
        assert_eq!(lease.attempt(s(0)), None, "it has not looked");
        assert!(lease.read(0, "", s(1)) && !lease.holds(s(1)));
        assert_eq!(lease.attempt(s(1)), Some(0));
        lease.wrote(7, s(1), s(2));
        assert_eq!((lease.holds(s(10)), lease.holds(s(11))), (true, false));
        assert_eq!((lease.attempt(s(5)), lease.attempt(s(6))), (None, Some(7)));
        lease.wrote(8, s(6), s(6));
        assert_eq!(lease.held_at(s(15)), Some(8));
        lease.gave_back(9, s(15));
        assert!(!lease.holds(s(15)));
        assert_eq!(lease.attempt(s(15)), Some(9));
    }

    #[test]
    fn the_lease_of_another_is_taken_after_a_term_without_a_change() {
        let mut lease = Lease::new("a".to_owned());
        lease.read(3, "b", s(0));
        lease.read(3, "b", s(14));
        assert_eq!(lease.attempt(s(14)), None);
        lease.read(4, "b", s(14));
        assert_eq!((lease.attempt(s(28)), lease.attempt(s(29))), (None, Some(4)));
        assert!(!lease.read(3, "", s(29)), "a server that is behind");
        assert_eq!(lease.attempt(s(28)), None);
    }

    #[test]
    fn a_write_of_unknown_fate_is_read_anew() {
        let mut lease = Lease::new("a".to_owned());
        lease.read(0, "", s(0));
        lease.lost();
        assert!(!lease.holds(s(0)));
        // It has come: the process takes it on with the next write.
        lease.read(5, "a", s(1));
        assert!(!lease.holds(s(1)));
        assert_eq!(lease.attempt(s(1)), Some(5));
        lease.wrote(6, s(1), s(1));
        assert!(lease.read(7, "b", s(3)) && !lease.holds(s(3)), "another one has it");
    }
}
