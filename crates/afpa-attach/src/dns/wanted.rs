//! Questions that are to be asked, the hottest first. No I/O, no clock.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use super::answer::{Tail, Unfit};
use super::key::Key;
use super::pins::Pin;

/// Questions that are to be asked for. The programs tell of those that come twice within a minute.
#[derive(Debug, Default)]
pub struct Wanted {
    /// Those that wait, by how often the programs told of them meanwhile: once, twice, four times, and so on.
    queues: [VecDeque<(u64, Key)>; LEVELS],
    /// Not before these times, in their order.
    later: BTreeMap<(u64, u64), Key>,
    /// Each that waits, in whichever way.
    waiting: HashMap<Key, Waiting>,
    numbered: u64,
    /// Those that are asked at this moment.
    asking: HashSet<Key>,
    /// Until when a question is left alone, and why.
    left: HashMap<Key, (u64, Unfit)>,
    /// Differences that the programs found.
    doubts: HashMap<Key, Doubt>,
}

/// A question that waits.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    /// How often the programs told of it.
    times: u32,
    /// The number of its place: an entry of a queue with another one is over.
    number: u64,
    /// It has a time before which it is not asked.
    is_later: bool,
}

/// A pinned answer that the programs dropped because the server's own was another one.
#[derive(Debug, Default)]
struct Doubt {
    /// The answer, and the edition of its zone, until the server has been asked.
    dropped: Option<(Tail, u32)>,
    /// How often the server then said something else, how often the same, and when last.
    times: u32,
    alarms: u32,
    last: u64,
}

/// The meaning of the server's new answer, after a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// There was no difference.
    Undoubted,
    /// The server says what it said before: the difference was the answer to another query with the same id.
    FalseAlarm,
    /// It says something else, because the zone has changed.
    NewEdition,
    /// It says something else, and nothing told so.
    Changed,
    /// It says something else for the second time within ten minutes; or the same so often that it may answer others
    /// otherwise.
    Barred,
}

/// Questions that wait.
const REMEMBERED: usize = 16_384;
/// Queues of those that wait.
const LEVELS: usize = 12;
/// When a question is asked again that is asked already.
const MOMENT: u64 = 10_000_000;
/// How long a question is left alone that cannot be pinned; one whose answers differed twice.
const ALONE: u64 = 30_000_000_000;
const BARRED: u64 = 600_000_000_000;
/// False alarms within that time which bar a question all the same: a server with views makes them, too, and its clients
/// must not get each other's answers.
const MOST_ALARMS: u32 = 4;
/// Differences that are remembered, each with an answer.
const DOUBTS: usize = 4096;

impl Waiting {
    fn level(self) -> usize {
        (self.times.max(1).ilog2() as usize).min(LEVELS - 1)
    }
}

impl Doubt {
    fn is_old(&self, now: u64) -> bool {
        now.saturating_sub(self.last) >= BARRED
    }
}

impl Wanted {
    /// Clients ask for this again and again.
    pub fn saw(&mut self, key: Key, now: u64) {
        if let Some(waiting) = self.waiting.get_mut(&key) {
            let before = *waiting;
            waiting.times = waiting.times.saturating_add(1);
            if !before.is_later && waiting.level() > before.level() {
                self.enqueue(key);
            }
            return;
        }
        let is_left = || self.left.get(&key).is_some_and(|(until, _)| now < *until);
        if !self.asking.contains(&key) && !is_left() {
            self.want(key);
        }
    }

    /// Ask for it, as soon as may be.
    pub fn want(&mut self, key: Key) {
        if self.admit(&key, false) {
            self.enqueue(key);
        }
    }

    /// Ask for it at this time.
    pub fn want_at(&mut self, key: Key, at: u64) {
        if self.admit(&key, true)
            && let Some(waiting) = self.waiting.get(&key)
        {
            self.later.insert((at, waiting.number), key);
        }
    }

    /// Makes room for one that does not wait yet, by dropping the one of those that were seen least which has waited longest.
    fn admit(&mut self, key: &Key, is_later: bool) -> bool {
        if self.waiting.contains_key(key) {
            return false;
        }
        if self.waiting.len() >= REMEMBERED {
            let dropped = (0..LEVELS).find_map(|level| self.take(level));
            if dropped.is_none() {
                return false;
            }
        }
        self.numbered += 1;
        let waiting = Waiting { times: 1, number: self.numbered, is_later };
        self.waiting.insert(key.clone(), waiting).is_none()
    }

    /// To the end of the queue for how often it was seen.
    fn enqueue(&mut self, key: Key) {
        self.numbered += 1;
        let Some(waiting) = self.waiting.get_mut(&key) else { return };
        waiting.number = self.numbered;
        let (entry, level) = ((self.numbered, key), waiting.level());
        let Some(queue) = self.queues.get_mut(level) else { return };
        if queue.len() >= 2 * REMEMBERED {
            let waiting = &self.waiting;
            queue.retain(|(number, key)| waiting.get(key).is_some_and(|is| is.number == *number));
        }
        queue.push_back(entry);
    }

    /// The first of a queue, which waits no longer.
    fn take(&mut self, level: usize) -> Option<Key> {
        let queue = self.queues.get_mut(level)?;
        while let Some((number, key)) = queue.pop_front() {
            // It may have come to another queue since.
            if self.waiting.get(&key).is_some_and(|waiting| waiting.number == number) {
                self.waiting.remove(&key);
                return Some(key);
            }
        }
        None
    }

    /// The next question to ask. It is asked until [`Wanted::done`].
    pub fn next(&mut self, now: u64) -> Option<Key> {
        loop {
            let key = self.take_due(now).or_else(|| {
                let mut hottest_first = (0..LEVELS).rev();
                hottest_first.find_map(|level| self.take(level))
            })?;
            if self.asking.insert(key.clone()) {
                return Some(key);
            }
            self.want_at(key, now + MOMENT);
        }
    }

    fn take_due(&mut self, now: u64) -> Option<Key> {
        let ((at, number), _) = self.later.first_key_value()?;
        let due = Some((*at, *number)).filter(|(at, _)| *at <= now)?;
        let key = self.later.remove(&due)?;
        self.waiting.remove(&key);
        Some(key)
    }

    /// It is asked no longer.
    pub fn done(&mut self, key: &Key) {
        self.asking.remove(key);
    }

    /// It cannot be pinned now.
    pub fn leave(&mut self, key: Key, why: Unfit, now: u64) {
        if self.left.len() >= REMEMBERED {
            self.left.retain(|_, (until, _)| now < *until);
        }
        if self.left.len() < REMEMBERED {
            let alone = match why {
                Unfit::Barred => BARRED,
                Unfit::Changing | Unfit::Silence => ALONE / 30,
                _ => ALONE,
            };
            self.left.insert(key, (now + alone, why));
        }
    }

    /// The server's own answer differed from this one, or may have: anybody can send two queries with one id.
    pub fn doubt(&mut self, key: Key, dropped: Option<Pin>, now: u64) {
        if self.doubts.len() >= DOUBTS {
            self.doubts.retain(|_, doubt| doubt.times + doubt.alarms > 0 && !doubt.is_old(now));
        }
        if self.doubts.len() >= DOUBTS {
            self.doubts.clear();
        }
        if let Some(Pin { tail, edition, .. }) = dropped {
            self.doubts.entry(key.clone()).or_default().dropped = Some((tail, edition));
        }
        self.want(key);
    }

    /// Whether a difference waits for the server's new answer.
    pub fn is_doubted(&self, key: &Key) -> bool {
        self.doubts.get(key).is_some_and(|doubt| doubt.dropped.is_some())
    }

    /// The server was asked, and this is its answer.
    pub fn judge(&mut self, key: &Key, tail: &Tail, edition: u32, now: u64) -> Verdict {
        let Some(doubt) = self.doubts.get_mut(key) else { return Verdict::Undoubted };
        let Some((dropped, before)) = doubt.dropped.take() else { return Verdict::Undoubted };
        let is_same = dropped == *tail;
        if !is_same && before != edition {
            return Verdict::NewEdition;
        }
        if doubt.is_old(now) {
            (doubt.times, doubt.alarms) = (0, 0);
        }
        doubt.last = now;
        if is_same {
            (doubt.times, doubt.alarms) = (0, doubt.alarms + 1);
        } else {
            doubt.times += 1;
        }
        if doubt.times < 2 && doubt.alarms < MOST_ALARMS {
            return if is_same { Verdict::FalseAlarm } else { Verdict::Changed };
        }
        self.doubts.remove(key);
        Verdict::Barred
    }

    /// How many are to be asked for, or are asked; and how many are left alone, by reason.
    pub fn standing(&self, now: u64) -> (usize, BTreeMap<String, u64>) {
        let mut reasons = BTreeMap::new();
        for (_, why) in self.left.values().filter(|(until, _)| now < *until) {
            *reasons.entry(why.to_string()).or_default() += 1;
        }
        (self.waiting.len() + self.asking.len(), reasons)
    }
}

#[cfg(test)]
mod tests {
    use super::super::key;
    use super::super::pins::Pins;
    use super::super::pins::tests::{hashed, key, tail};
    use super::*;

    /// The next one, which is asked at once.
    fn next(wanted: &mut Wanted, now: u64) -> Option<Key> {
        let key = wanted.next(now)?;
        wanted.done(&key);
        Some(key)
    }

    #[test]
    fn the_hottest_come_first_and_the_coldest_are_dropped() {
        let mut wanted = Wanted::default();
        let see = |wanted: &mut Wanted, number, times| {
            (0..times).for_each(|_| wanted.saw(key(number), 0));
        };
        for (number, times) in [(1, 1), (2, 2), (3, 8), (4, 9)] {
            see(&mut wanted, number, times);
        }
        let order: Vec<_> = std::iter::from_fn(|| next(&mut wanted, 0)).collect();
        assert_eq!(order, [3, 4, 2, 1].map(key), "by the powers of two");
        assert!(wanted.waiting.is_empty());
        // Others push out those that are seen no more often.
        see(&mut wanted, 1, 2);
        for number in 0..2 * REMEMBERED {
            let name = key::read(&format!("n{number}.example")).unwrap();
            let key = key::key(&name, 1, 0, 0).unwrap();
            wanted.saw(key, 0);
            assert!(wanted.waiting.len() <= REMEMBERED);
        }
        assert_eq!(next(&mut wanted, 0), Some(key(1)));
        assert_eq!(std::iter::from_fn(|| next(&mut wanted, 0)).count(), REMEMBERED - 1);
    }

    #[test]
    fn queues_forget_entries_that_are_over() {
        let mut wanted = Wanted::default();
        for _ in 0..8 * REMEMBERED {
            (0..2).for_each(|_| wanted.saw(key(1), 0));
            assert_eq!(next(&mut wanted, 0), Some(key(1)));
        }
        assert!(wanted.queues.iter().all(|queue| queue.len() <= 2 * REMEMBERED));
    }

    #[test]
    fn a_question_that_is_asked_is_not_asked_at_the_same_time() {
        let mut wanted = Wanted::default();
        wanted.want(key(1));
        assert_eq!(wanted.next(0), Some(key(1)));
        (0..2).for_each(|_| wanted.saw(key(1), 0));
        assert_eq!(wanted.next(0), None, "it is known");
        wanted.doubt(key(1), None, 0);
        assert_eq!((wanted.next(0), wanted.next(MOMENT)), (None, None), "it is doubted");
        wanted.done(&key(1));
        assert_eq!((wanted.standing(0).0, wanted.next(2 * MOMENT)), (1, Some(key(1))));
        assert_eq!(wanted.standing(0).0, 1, "it is asked");
    }

    #[test]
    fn a_question_is_left_alone_for_a_while_or_asked_later() {
        let mut wanted = Wanted::default();
        wanted.saw(key(1), 0);
        assert_eq!(next(&mut wanted, 0), Some(key(1)));
        wanted.leave(key(1), Unfit::Unstable, 0);
        wanted.saw(key(1), 1);
        wanted.saw(key(1), 2);
        assert_eq!(next(&mut wanted, 2), None, "left alone");
        wanted.saw(key(1), ALONE);
        assert_eq!(next(&mut wanted, ALONE), Some(key(1)));
        wanted.want_at(key(2), 100);
        assert_eq!((next(&mut wanted, 99), next(&mut wanted, 100)), (None, Some(key(2))));
    }

    #[test]
    fn only_another_answer_of_the_server_bars_a_question() {
        let (mut pins, mut wanted) = (Pins::default(), Wanted::default());
        let mut differs = |wanted: &mut Wanted, now| {
            pins.add(hashed(key(1)), (&tail(1), false), 7, now).unwrap();
            wanted.doubt(key(1), pins.remove(&key(1), now), now);
            assert!(wanted.is_doubted(&key(1)));
            assert_eq!(next(wanted, now), Some(key(1)), "the server is asked");
        };
        assert_eq!(wanted.judge(&key(1), &tail(2), 7, 0), Verdict::Undoubted);
        for turn in 0..100 {
            differs(&mut wanted, turn);
            assert_eq!(wanted.judge(&key(1), &tail(2), 8, turn), Verdict::NewEdition);
        }
        differs(&mut wanted, 100);
        assert_eq!(wanted.judge(&key(1), &tail(2), 7, 100), Verdict::Changed);
        assert_eq!(wanted.judge(&key(1), &tail(3), 7, 101), Verdict::Undoubted, "once each");
        differs(&mut wanted, 100 + BARRED);
        assert_eq!(wanted.judge(&key(1), &tail(2), 7, 100 + BARRED), Verdict::Changed, "long ago");
        differs(&mut wanted, 101 + BARRED);
        assert_eq!(wanted.judge(&key(1), &tail(2), 7, 101 + BARRED), Verdict::Barred);
        assert!(!wanted.is_doubted(&key(1)));
    }

    #[test]
    fn false_alarms_bar_a_question_when_they_are_many() {
        let (mut pins, mut wanted) = (Pins::default(), Wanted::default());
        let mut alarm = |now| {
            pins.add(hashed(key(1)), (&tail(1), false), 7, now).unwrap();
            wanted.doubt(key(1), pins.remove(&key(1), now), now);
            next(&mut wanted, now);
            wanted.judge(&key(1), &tail(1), 7, now)
        };
        for turn in 0..20 {
            assert_eq!(alarm(turn * BARRED), Verdict::FalseAlarm, "seldom");
        }
        let begin = 100 * BARRED;
        for turn in 1..MOST_ALARMS {
            assert_eq!(alarm(begin + u64::from(turn)), Verdict::FalseAlarm);
        }
        assert_eq!(
            alarm(begin + u64::from(MOST_ALARMS)),
            Verdict::Barred,
            "as a server with views does"
        );
    }

    #[test]
    fn differences_are_remembered_within_bounds() {
        let mut wanted = Wanted::default();
        let mut pins = Pins::default();
        for number in 0..2 * DOUBTS {
            let number = u16::try_from(number).unwrap();
            pins.add(hashed(key(number)), (&tail(1), false), 7, 0).unwrap();
            wanted.doubt(key(number), pins.remove(&key(number), 0), 0);
            assert!(wanted.doubts.len() <= DOUBTS && wanted.is_doubted(&key(number)));
        }
    }
}
