//! Weighted round robin, exactly as in the IBM paper (section 3).
//!
//! "Each server has a numerical weight that specifies the number of requests AFPA directs to the
//! given server before sending one or more requests to the next server in the group." The turns are
//! in the order of the configuration; an unavailable server has weight zero and so no turn.

/// A server in slow start has at least this share of its turns, per mille.
const LEAST_SHARE: u32 = 100;

/// The turns of a group's servers.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    /// The server whose turn it is; before any request, the first one.
    at: Option<usize>,
    /// Requests that are left of its turn.
    left: u32,
    /// By server: how much of a turn it has accumulated during slow start, per mille.
    credit: Vec<u32>,
}

/// The share of a server in the next requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Turn {
    /// Requests in one turn; 0: no turn.
    pub(crate) weight: u32,
    /// How many of its turns it takes, per mille: less than 1000 during slow start.
    pub(crate) share: u32,
}

impl Turns {
    /// The server that gets the next request, among `count` servers. `turn` returns 0 for a server that cannot
    /// be used or is full: it loses the rest of its turn.
    pub(crate) fn next(&mut self, count: usize, turn: impl Fn(usize) -> Turn) -> Option<usize> {
        if count == 0 {
            return None;
        }
        self.credit.resize(count, 0);
        // A server in slow start is passed over at most 1000 / LEAST_SHARE times.
        let steps = count.saturating_mul(1000 / LEAST_SHARE as usize + 1) + 1;
        for _ in 0..steps {
            if let Some(at) = self.at.filter(|at| *at < count)
                && self.left > 0
                && turn(at).weight > 0
            {
                self.left -= 1;
                return Some(at);
            }
            self.begin_next(count, &turn);
        }
        None
    }

    fn begin_next(&mut self, count: usize, turn: &impl Fn(usize) -> Turn) {
        let next = self.at.map_or(0, |at| at + 1);
        let next = if next < count { next } else { 0 };
        self.at = Some(next);
        self.left = 0;
        let Some(credit) = self.credit.get_mut(next) else { return };
        let Turn { weight, share } = turn(next);
        if weight == 0 {
            return;
        }
        *credit += share.clamp(LEAST_SHARE, 1000);
        if *credit >= 1000 {
            *credit -= 1000;
            self.left = weight;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn whole(weight: u32) -> Turn {
        Turn { weight, share: 1000 }
    }

    #[test]
    fn the_papers_definition() {
        let weights = [2, 1, 0, 3];
        let mut turns = Turns::default();
        let order: Vec<_> =
            (0..12).map(|_| turns.next(4, |s| whole(weights[s])).unwrap()).collect();
        assert_eq!(order, [0, 0, 1, 3, 3, 3, 0, 0, 1, 3, 3, 3]);
    }

    #[test]
    fn without_weights_nobody_has_a_turn() {
        let mut turns = Turns::default();
        assert_eq!(turns.next(0, |_| whole(1)), None);
        assert_eq!(turns.next(3, |_| whole(0)), None);
        assert_eq!(turns.next(3, |s| whole(u32::from(s == 2))), Some(2), "a weight was restored");
    }

    #[test]
    fn a_server_that_becomes_unavailable_loses_the_rest_of_its_turn() {
        let mut turns = Turns::default();
        assert_eq!(turns.next(2, |_| whole(3)), Some(0));
        assert_eq!(turns.next(2, |s| whole(if s == 0 { 0 } else { 3 })), Some(1));
        let order: Vec<_> = (0..5).map(|_| turns.next(2, |_| whole(3)).unwrap()).collect();
        assert_eq!(order, [1, 1, 0, 0, 0]);
    }

    #[test]
    fn slow_start_takes_a_share_of_the_turns() {
        let mut turns = Turns::default();
        let turn = |s| Turn { weight: 1, share: if s == 1 { 250 } else { 1000 } };
        let slow = (0..500).filter(|_| turns.next(2, turn) == Some(1)).count();
        assert_eq!(slow, 100, "1 of 5 with a quarter of the turns");
        let alone = |_| Turn { weight: 1, share: 1 };
        assert_eq!(Turns::default().next(1, alone), Some(0), "also when nobody else is there");
    }

    proptest! {
        /// After whole rounds each server has had exactly its weight of each round, in order.
        #[test]
        fn every_round_is_exact(weights in prop::collection::vec(0_u32..50, 1..40), rounds in 1_usize..5) {
            let sum: u32 = weights.iter().sum();
            prop_assume!(sum > 0);
            let mut turns = Turns::default();
            for _ in 0..rounds {
                let mut expected = Vec::new();
                for (server, weight) in weights.iter().enumerate() {
                    expected.extend(std::iter::repeat_n(server, *weight as usize));
                }
                for server in expected {
                    prop_assert_eq!(turns.next(weights.len(), |s| whole(weights[s])), Some(server));
                }
            }
        }

        /// While servers come and go, a selected server has a weight, and one is selected whenever any
        /// server has a weight.
        #[test]
        fn only_the_available_are_selected(
            masks in prop::collection::vec((any::<u16>(), 1_usize..16, 0_u32..1001), 1..200),
        ) {
            let mut turns = Turns::default();
            for (mask, count, share) in masks {
                let weight = |s: usize| u32::from(mask >> s & 1) * 2;
                let got = turns.next(count, |s| Turn { weight: weight(s), share });
                let any = (0..count).any(|s| weight(s) > 0);
                prop_assert_eq!(got.is_some(), any);
                prop_assert!(got.is_none_or(|s| s < count && weight(s) > 0));
            }
        }
    }
}
