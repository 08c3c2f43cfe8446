//! Connections without a socket that never reach the kernel's TCP (`bpf/include/afpa/conn/loss.h`).

use std::time::{Duration, Instant};

/// Whether something on this host drops connections that the kernel's TCP is to take in the middle. Pure.
#[derive(Debug, Default)]
pub(super) struct Loss {
    seen: Losses,
    until: Option<Instant>,
    /// Since when, and from which count on, those are counted that were lost while others arrived.
    counted: Option<(Instant, u64)>,
}

/// Counts of connections that never reached their listener.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Losses {
    /// Nothing says that others do.
    pub(super) all: u64,
    /// Others did.
    pub(super) alone: u64,
    /// Prefixes of the clients of these, since they were counted anew.
    pub(super) prefixes: u32,
}

impl Loss {
    /// The rule that drops them may go, and another listener's queue may have been full.
    const PAUSE: Duration = Duration::from_secs(600);

    /// From so many on in that time, clients are not banned one by one: a rule drops those of one interface, say.
    const MOST_PREFIXES: u32 = 8;
    const MOST_ALONE: u64 = 64;

    /// Whether connections have sockets now; and whether prefixes are to be counted anew.
    pub(super) fn see(&mut self, now_seen: Losses, now: Instant) -> (bool, bool) {
        let counted = self.counted.filter(|(since, _)| now - *since < Self::PAUSE);
        let many = now_seen.prefixes >= Self::MOST_PREFIXES
            || counted.is_some_and(|(_, from)| now_seen.alone - from >= Self::MOST_ALONE);
        let many = many && counted.is_some();
        if now_seen.all > self.seen.all || many {
            self.until = now.checked_add(Self::PAUSE);
        }
        let anew = many || counted.is_none();
        self.counted = if anew { Some((now, now_seen.alone)) } else { counted };
        self.seen = now_seen;
        (self.until.is_some_and(|until| now < until), anew)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_connection_counts_for_ten_minutes() {
        let (mut loss, begin) = (Loss::default(), Instant::now());
        let mut see = |all, seconds| {
            loss.see(Losses { all, ..Losses::default() }, begin + Duration::from_secs(seconds)).0
        };
        assert!(!see(0, 0));
        assert!(see(1, 10) && see(1, 609) && !see(1, 610), "ten minutes");
        assert!(see(3, 700) && see(4, 1200) && see(4, 1799) && !see(4, 1800), "from the last one");
    }

    #[test]
    fn clients_that_are_banned_one_by_one_leave_the_others_alone() {
        let (mut loss, begin) = (Loss::default(), Instant::now());
        let mut see = |alone, prefixes, seconds| {
            let seen = Losses { all: 0, alone, prefixes };
            loss.see(seen, begin + Duration::from_secs(seconds))
        };
        assert_eq!(see(0, 9, 0), (false, true), "those of a process before");
        assert_eq!([see(1, 1, 1), see(20, 7, 599)], [(false, false); 2]);
        assert_eq!(see(70, 7, 600), (false, true), "ten minutes later");
        assert_eq!([see(71, 1, 601), see(130, 7, 700)], [(false, false); 2]);
        assert_eq!(see(134, 7, 701), (true, true), "many of few clients");
        assert_eq!(see(134, 0, 1300), (true, false));
        assert_eq!(see(134, 0, 1301), (false, true));
        assert_eq!(see(142, 8, 1302), (true, true), "of many clients");
    }
}
