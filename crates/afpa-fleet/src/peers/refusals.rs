//! The refusals of one other machine: how often it is asked again.
//!
//! A refused question costs a client the way to that machine and back. So after some in a row for a place it is asked seldom
//! there, for as long as the last reason says, and one question at a time finds out whether it has gone.

use std::collections::HashMap;
use std::time::Duration;

/// The reason of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The other machine has other rules for the place, or another key for the request.
    OtherRules,
    /// It cannot answer just now: most often it is not as far with orders to purge.
    Now,
}

/// The refusals of one machine, by place.
#[derive(Debug, Default)]
pub struct Refusals {
    places: HashMap<[u8; 16], Row>,
    told: bool,
}

/// Refusals in a row.
#[derive(Clone, Copy, Debug)]
struct Row {
    count: u32,
    why: Refusal,
    /// It is not asked until then.
    until: Duration,
}

/// So many in a row are no chance.
const MOST: u32 = 3;

/// Places that are remembered. A configuration has fewer; those of earlier ones may be among them.
const MOST_PLACES: usize = 1024;

impl Refusal {
    /// How long it is not asked.
    fn pause(self) -> Duration {
        match self {
            // Somebody has to change a configuration.
            Self::OtherRules => Duration::from_secs(10),
            Self::Now => Duration::from_millis(250),
        }
    }
}

impl Refusals {
    /// Whether the machine may be asked about a place. After a pause this is so for one question.
    pub fn may_ask(&mut self, place: &[u8; 16], now: Duration) -> bool {
        let Some(row) = self.places.get_mut(place).filter(|row| row.count >= MOST) else {
            return true;
        };
        let is_over = now >= row.until;
        if is_over {
            row.until = now.saturating_add(row.why.pause());
        }
        is_over
    }

    /// A question that was allowed did not reach it: the next one may find out.
    pub fn not_asked(&mut self, place: &[u8; 16], now: Duration) {
        if let Some(row) = self.places.get_mut(place) {
            row.until = row.until.min(now);
        }
    }

    /// It has refused a question. Whether the log is to say so, once.
    pub fn refused(&mut self, place: &[u8; 16], why: Refusal, now: Duration) -> bool {
        if self.places.len() >= MOST_PLACES && !self.places.contains_key(place) {
            self.places.clear();
        }
        // One of another kind is no answer, either: it is counted with those before.
        let row = self.places.entry(*place).or_insert(Row { count: 0, why, until: now });
        row.count = row.count.saturating_add(1);
        row.why = why;
        row.until = now.saturating_add(why.pause());
        let is_news = row.count >= MOST && why == Refusal::OtherRules;
        is_news && !std::mem::replace(&mut self.told, true)
    }

    /// It has answered one.
    pub fn answered(&mut self, place: &[u8; 16]) {
        self.places.remove(place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: [u8; 16] = [1; 16];

    fn ms(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    #[test]
    fn a_machine_with_other_rules_is_asked_seldom_and_named_once() {
        let mut refusals = Refusals::default();
        let mut refused = |now| refusals.refused(&HERE, Refusal::OtherRules, ms(now));
        assert_eq!((refused(0), refused(1), refused(2), refused(3)), (false, false, true, false));
        assert!(refusals.may_ask(&[2; 16], ms(4)), "it may have the same ones elsewhere");
        let asked: Vec<_> = (4..30_000).filter(|&now| refusals.may_ask(&HERE, ms(now))).collect();
        assert_eq!(asked, [10_003, 20_003], "one question a pause");
        refusals.answered(&HERE);
        assert!(refusals.may_ask(&HERE, ms(20_004)) && refusals.may_ask(&HERE, ms(20_005)));
        for now in 30_000..30_003 {
            assert!(!refusals.refused(&HERE, Refusal::OtherRules, ms(now)), "it is known");
        }
        assert!(!refusals.may_ask(&HERE, ms(30_003)));
    }

    #[test]
    fn one_that_cannot_answer_for_a_moment_is_asked_again_soon() {
        let mut refusals = Refusals::default();
        for now in 0..2 {
            assert!(!refusals.refused(&HERE, Refusal::Now, ms(now)));
            assert!(refusals.may_ask(&HERE, ms(now)));
        }
        assert!(!refusals.refused(&HERE, Refusal::Now, ms(2)));
        assert!(!refusals.may_ask(&HERE, ms(251)) && refusals.may_ask(&HERE, ms(252)));
    }

    #[test]
    fn refusals_of_all_kinds_add_up_and_the_last_one_says_how_long() {
        use Refusal::{Now, OtherRules};
        let mut refusals = Refusals::default();
        for (now, why) in [(0, Now), (1, OtherRules), (2, Now)] {
            assert!(refusals.may_ask(&HERE, ms(now)));
            refusals.refused(&HERE, why, ms(now));
        }
        assert!(!refusals.may_ask(&HERE, ms(251)) && refusals.may_ask(&HERE, ms(252)));
        assert!(refusals.refused(&HERE, OtherRules, ms(253)), "it has other rules");
        assert!(!refusals.may_ask(&HERE, ms(10_252)) && refusals.may_ask(&HERE, ms(10_253)));
        refusals.refused(&HERE, Now, ms(10_254));
        assert!(refusals.may_ask(&HERE, ms(10_504)), "the rules are the same now");
    }

    #[test]
    fn a_question_that_is_not_asked_uses_up_no_pause() {
        let mut refusals = Refusals::default();
        for now in 0..3 {
            refusals.refused(&HERE, Refusal::OtherRules, ms(now));
        }
        assert!(refusals.may_ask(&HERE, ms(10_002)) && !refusals.may_ask(&HERE, ms(10_003)));
        refusals.not_asked(&HERE, ms(10_004));
        assert!(refusals.may_ask(&HERE, ms(10_004)), "the next one at once");
        assert!(!refusals.may_ask(&HERE, ms(10_005)), "and one alone");
        refusals.not_asked(&[2; 16], ms(0));
    }

    #[test]
    fn places_have_a_bound() {
        let mut refusals = Refusals::default();
        for number in 0..3 * MOST_PLACES as u128 {
            refusals.refused(&number.to_be_bytes(), Refusal::OtherRules, ms(0));
        }
        assert!(refusals.places.len() <= MOST_PLACES);
    }
}
