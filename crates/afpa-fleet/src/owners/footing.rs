//! Which machine may ask another for an answer, and get one: nobody may get an answer that is older than a purge which has been
//! acknowledged to anybody, or done at the machine that asks.

use crate::follower::Position;

/// How far a machine is with orders to purge, for a question to another one. The question carries the place of the machine
/// that asks; one that is not as far does not answer.
///
/// An answer that comes while an order to purge it is carried out is for the requests that asked before, and is not kept: that
/// is the affair of the cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Footing {
    /// Orders are carried out here up to this place; `None`: it follows no log.
    pub at: Option<Position>,
    /// The last order of its own that the log has, or may have from before it began.
    pub logged: Option<Position>,
    /// Orders of its own wait for the log: others cannot know them.
    pub waits: bool,
}

impl Footing {
    /// The place for a question; `None`: this machine may ask nobody. It has done its own orders at once, and the others may
    /// not have: only those that are as far as this place have, so it has to include these orders.
    pub fn asks(&self) -> Option<Position> {
        let at = self.at.filter(|_| !self.waits)?;
        // A machine that has come to a log that was made later has dropped everything, and so has whoever answers there.
        let knows = |logged: Position| at.is_at(&logged) || at.log > logged.log;
        self.logged.is_none_or(knows).then_some(at)
    }

    /// Whether this machine may answer a question from this place.
    pub fn answers(&self, asked: Position) -> bool {
        self.at.is_some_and(|at| at.is_at(&asked))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(log: u64, sequence: u64) -> Option<Position> {
        Some(Position { log, sequence })
    }

    #[test]
    fn a_machine_whose_own_orders_others_cannot_know_asks_nobody() {
        let footing = |at, logged, waits| Footing { at, logged, waits };
        assert_eq!(footing(at(7, 5), None, false).asks(), at(7, 5));
        assert_eq!(footing(at(7, 5), at(7, 5), false).asks(), at(7, 5));
        assert_eq!(footing(at(7, 5), at(6, 9), false).asks(), at(7, 5), "all was dropped since");
        for (place, logged, waits) in [
            (None, None, false),
            (at(7, 5), None, true),
            (at(7, 5), at(7, 6), false),
            (at(7, 5), at(8, 1), false),
        ] {
            assert_eq!(footing(place, logged, waits).asks(), None, "{place:?} {logged:?} {waits}");
        }
    }

    #[test]
    fn a_machine_that_is_not_as_far_does_not_answer() {
        let footing = Footing { at: at(7, 5), ..Footing::default() };
        let answers = |log, sequence| footing.answers(Position { log, sequence });
        assert!(answers(7, 5) && answers(7, 0));
        assert!(!answers(7, 6) && !answers(6, 1) && !answers(8, 1));
        assert!(!Footing::default().answers(Position { log: 7, sequence: 0 }));
    }
}
