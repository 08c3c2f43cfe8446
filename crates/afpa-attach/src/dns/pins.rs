//! Pinned answers, and questions that are to be asked. No I/O, no clock.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use afpa_bpf::dns::abi::{DNS_KEYS, DNS_TAILS, DnsKey};

use super::answer::{Tail, Unfit};
use super::key;
use super::zones::REST;

/// A pinned answer.
#[derive(Clone, Debug)]
pub struct Pin {
    /// The edition of its zone.
    pub edition: u32,
    /// The pinned part.
    pub tail: Tail,
    /// Its number.
    number: u32,
    /// Its name may be anybody's guess.
    guess: bool,
    /// Since when.
    since: u64,
    /// How many were pinned before it: a key that was pinned again is another one.
    turn: u64,
}

/// All of them, with their tails, which many share.
#[derive(Debug, Default)]
pub struct Pins {
    keys: HashMap<DnsKey, Pin>,
    tails: HashMap<Tail, (u32, u32)>,
    fresh: u32,
    free: Vec<u32>,
    /// Numbers of tails that programs may still read for a moment.
    fallow: VecDeque<(u64, u32)>,
    /// Those of names that anybody may have thought of, in all and by the edition of their zone.
    guesses: usize,
    guesses_of: HashMap<u32, usize>,
    /// In rounds these are confirmed: the time of the last one, and which.
    round: VecDeque<(u64, DnsKey, u64)>,
    pinned: u64,
}

/// An eighth of the table is for names that do not exist, or are a wildcard's: anybody can ask for any number of them. A zone gets
/// half of that.
const GUESSES: usize = DNS_KEYS / 8;
const GUESSES_OF_ZONE: usize = GUESSES / 2;
/// Room is left, so that the kernel's table never is full.
const MOST: usize = DNS_KEYS - DNS_KEYS / 16;
/// An answer lives for an hour at most: then it is learnt anew, if it is still asked for.
const LIFE: u64 = 3_600_000_000_000;

/// A round takes this long at least, in nanoseconds.
const ROUND: u64 = 10_000_000_000;

/// A tail to write before its key: None if it is there already.
pub type NewTail = Option<u32>;

impl Pins {
    /// Notes an answer; `guess`: anybody may have thought of its name. Returns the number of its tail, and whether that must be
    /// written first.
    ///
    /// # Errors
    /// When there is no room.
    pub fn add(
        &mut self,
        key: DnsKey,
        (tail, guess): (&Tail, bool),
        edition: u32,
        now: u64,
    ) -> Result<(u32, NewTail), Unfit> {
        self.remove(&key, now);
        if self.keys.len() >= MOST || (guess && !self.has_room_for_guess(edition)) {
            return Err(Unfit::Full);
        }
        let (number, new) = match self.tails.get_mut(tail) {
            Some((number, uses)) => {
                *uses += 1;
                (*number, None)
            }
            None => {
                let number = self.number(now).ok_or(Unfit::Full)?;
                self.tails.insert(tail.clone(), (number, 1));
                (number, Some(number))
            }
        };
        if guess {
            self.guesses += 1;
            *self.guesses_of.entry(edition).or_default() += 1;
        }
        let turn = self.pinned;
        self.pinned += 1;
        let pin = Pin { edition, tail: tail.clone(), number, guess, since: now, turn };
        self.keys.insert(key, pin);
        self.round.push_back((now, key, turn));
        Ok((number, new))
    }

    fn has_room_for_guess(&self, edition: u32) -> bool {
        let of_zone = self.guesses_of.get(&edition).copied().unwrap_or(0);
        self.guesses < GUESSES && of_zone < GUESSES_OF_ZONE
    }

    fn number(&mut self, now: u64) -> Option<u32> {
        while let Some((since, number)) = self.fallow.front().copied()
            && now.saturating_sub(since) > REST
        {
            self.fallow.pop_front();
            self.free.push(number);
        }
        self.free.pop().or_else(|| {
            let fresh = self.fresh;
            self.fresh += 1;
            Some(fresh).filter(|fresh| (*fresh as usize) < DNS_TAILS)
        })
    }

    /// Forgets one, if it is there.
    pub fn remove(&mut self, key: &DnsKey, now: u64) -> Option<Pin> {
        let pin = self.keys.remove(key)?;
        if pin.guess {
            self.guesses -= 1;
            if let Some(count) = self.guesses_of.get_mut(&pin.edition) {
                *count -= 1;
            }
            self.guesses_of.retain(|_, count| *count > 0);
        }
        if let Some((_, uses)) = self.tails.get_mut(&pin.tail) {
            *uses -= 1;
            if *uses == 0 {
                self.tails.remove(&pin.tail);
                self.fallow.push_back((now, pin.number));
            }
        }
        Some(pin)
    }

    /// Those that `which` chooses, as of this moment.
    pub fn choose(&self, which: impl Fn(&DnsKey, &Pin) -> bool) -> Vec<DnsKey> {
        self.keys.iter().filter(|(key, pin)| which(key, pin)).map(|(key, _)| *key).collect()
    }

    /// The next one of the round, and whether its life is over. None: it is not time yet.
    pub fn next_of_round(&mut self, now: u64) -> Option<(DnsKey, Pin, bool)> {
        while let Some((last, key, turn)) = self.round.front().copied()
            && now.saturating_sub(last) >= ROUND
        {
            self.round.pop_front();
            if let Some(pin) = self.keys.get(&key).filter(|pin| pin.turn == turn) {
                self.round.push_back((now, key, turn));
                return Some((key, pin.clone(), now.saturating_sub(pin.since) > LIFE));
            }
        }
        None
    }

    /// Whether this very answer is pinned still.
    pub fn is_pinned(&self, key: &DnsKey, pin: &Pin) -> bool {
        self.keys.get(key).is_some_and(|now| now.turn == pin.turn)
    }

    /// Keys, tails, and keys of names that anybody may have thought of.
    pub fn standing(&self) -> (usize, usize, usize) {
        (self.keys.len(), self.tails.len(), self.guesses)
    }
}

/// Questions that were seen, and those that are to be asked for.
#[derive(Debug, Default)]
pub struct Wanted {
    /// When each was seen first.
    seen: HashMap<DnsKey, u64>,
    queue: VecDeque<DnsKey>,
    queued: HashSet<DnsKey>,
    /// Not before these times, in their order.
    later: BTreeMap<(u64, u64), DnsKey>,
    numbered: u64,
    /// Until when a question is left alone, and why.
    left: HashMap<DnsKey, (u64, Unfit)>,
    /// Differences that the programs found.
    doubts: HashMap<DnsKey, Doubt>,
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

/// A question counts if it comes twice within this time, in nanoseconds.
const TWICE: u64 = 60_000_000_000;
/// Questions that are remembered.
const REMEMBERED: usize = 16_384;
/// How long a question is left alone that cannot be pinned; one whose answers differed twice.
const ALONE: u64 = 30_000_000_000;
const BARRED: u64 = 600_000_000_000;
/// False alarms within that time which bar a question all the same: a server with views makes them, too, and its clients
/// must not get each other's answers.
const MOST_ALARMS: u32 = 4;
/// Differences that are remembered, each with an answer.
const DOUBTS: usize = 4096;

impl Doubt {
    fn is_old(&self, now: u64) -> bool {
        now.saturating_sub(self.last) >= BARRED
    }
}

impl Wanted {
    /// A client has asked this.
    pub fn saw(&mut self, key: DnsKey, now: u64) {
        if self.queued.contains(&key) || self.left.get(&key).is_some_and(|(until, _)| now < *until)
        {
            return;
        }
        match self.seen.get(&key) {
            Some(first) if now.saturating_sub(*first) <= TWICE => {
                self.seen.remove(&key);
                self.want(key);
            }
            _ => {
                if self.seen.len() >= REMEMBERED {
                    self.seen.clear();
                }
                self.seen.insert(key, now);
            }
        }
    }

    /// Ask for it, as soon as may be.
    pub fn want(&mut self, key: DnsKey) {
        if self.queued.len() < REMEMBERED && self.queued.insert(key) {
            self.queue.push_back(key);
        }
    }

    /// Ask for it at this time.
    pub fn want_at(&mut self, key: DnsKey, at: u64) {
        if self.queued.len() < REMEMBERED && self.queued.insert(key) {
            self.numbered += 1;
            self.later.insert((at, self.numbered), key);
        }
    }

    /// It cannot be pinned now.
    pub fn leave(&mut self, key: DnsKey, why: Unfit, now: u64) {
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
    pub fn doubt(&mut self, key: DnsKey, dropped: Option<Pin>, now: u64) {
        if self.doubts.len() >= DOUBTS {
            self.doubts.retain(|_, doubt| doubt.times + doubt.alarms > 0 && !doubt.is_old(now));
        }
        if self.doubts.len() >= DOUBTS {
            self.doubts.clear();
        }
        if let Some(Pin { tail, edition, .. }) = dropped {
            self.doubts.entry(key).or_default().dropped = Some((tail, edition));
        }
        self.want(key);
    }

    /// Whether a difference waits for the server's new answer.
    pub fn is_doubted(&self, key: &DnsKey) -> bool {
        self.doubts.get(key).is_some_and(|doubt| doubt.dropped.is_some())
    }

    /// The server was asked, and this is its answer.
    pub fn judge(&mut self, key: &DnsKey, tail: &Tail, edition: u32, now: u64) -> Verdict {
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

    /// The next question to ask.
    pub fn next(&mut self, now: u64) -> Option<DnsKey> {
        let due = self.later.first_key_value().filter(|((at, _), _)| *at <= now);
        let due = due.map(|(at, _)| *at);
        let key = due.and_then(|at| self.later.remove(&at)).or_else(|| self.queue.pop_front())?;
        self.queued.remove(&key);
        Some(key)
    }

    /// How many are to be asked for; and how many are left alone, by reason.
    pub fn standing(&self, now: u64) -> (usize, BTreeMap<String, u64>) {
        let mut reasons = BTreeMap::new();
        for (_, why) in self.left.values().filter(|(until, _)| now < *until) {
            *reasons.entry(why.to_string()).or_default() += 1;
        }
        (self.queued.len(), reasons)
    }
}

/// Whether a purge of this name is about the key: of the name itself, or of all at and below it.
pub fn is_purged(key: &DnsKey, name: &[u8], below: bool) -> bool {
    match below {
        true => key::is_below(key::name(key), name),
        false => key::name(key) == name,
    }
}

#[cfg(test)]
mod tests {
    use super::super::answer::{Exchange, ServerCookie};
    use super::*;

    fn key(number: u16) -> DnsKey {
        key::key(&key::read("a.example").unwrap(), number, 0, 0).unwrap()
    }

    fn tail(last: u8) -> Tail {
        let key = key(1);
        let query = key::query(&key, 1, 512, key::Case::Lower, 0);
        let mut answer = query.clone();
        answer[2] = 0x84;
        answer.push(last);
        Tail::of(&key, &Exchange { query, answer, cookie: ServerCookie::None }).unwrap()
    }

    #[test]
    fn tails_are_shared_and_their_numbers_rest() {
        let mut pins = Pins::default();
        assert_eq!(pins.add(key(1), (&tail(1), false), 7, 0), Ok((0, Some(0))));
        assert_eq!(pins.add(key(2), (&tail(1), false), 7, 0), Ok((0, None)));
        assert_eq!(pins.add(key(3), (&tail(2), false), 7, 0), Ok((1, Some(1))));
        assert!(pins.remove(&key(1), 5).is_some() && pins.remove(&key(2), 5).is_some());
        assert_eq!(pins.add(key(4), (&tail(3), false), 7, 6), Ok((2, Some(2))), "0 rests");
        assert_eq!(pins.add(key(5), (&tail(4), false), 7, 6 + REST), Ok((0, Some(0))));
        assert_eq!(pins.choose(|_, pin| pin.edition == 7).len(), 3);
    }

    #[test]
    fn names_that_anybody_may_think_of_leave_room_for_others() {
        let mut pins = Pins::default();
        let name = |zone: u32, at: usize| {
            key::key(&key::read(&format!("n{at}.z{zone}.example")).unwrap(), 1, 0, 0).unwrap()
        };
        let mut fill = |zone: u32| {
            (0..GUESSES)
                .filter(|at| pins.add(name(zone, *at), (&tail(1), true), zone, 0).is_ok())
                .count()
        };
        assert_eq!((fill(1), fill(2), fill(3)), (GUESSES_OF_ZONE, GUESSES_OF_ZONE, 0));
        assert!(pins.add(name(1, 9999), (&tail(1), false), 1, 0).is_ok(), "another name");
        assert!(pins.remove(&name(1, 0), 0).is_some());
        assert!(pins.add(name(3, 0), (&tail(1), true), 3, 0).is_ok());
        assert_eq!(pins.standing().2, GUESSES);
    }

    #[test]
    fn a_question_counts_when_it_comes_twice() {
        let mut wanted = Wanted::default();
        wanted.saw(key(1), 0);
        assert_eq!(wanted.next(0), None);
        wanted.saw(key(1), TWICE + 1);
        assert_eq!(wanted.next(0), None, "too late");
        wanted.saw(key(1), TWICE + 2);
        assert_eq!(wanted.next(0), Some(key(1)));
        wanted.leave(key(1), Unfit::Unstable, 0);
        wanted.saw(key(1), 1);
        wanted.saw(key(1), 2);
        assert_eq!(wanted.next(2), None, "left alone");
        wanted.want_at(key(2), 100);
        assert_eq!((wanted.next(99), wanted.next(100)), (None, Some(key(2))));
    }

    #[test]
    fn only_another_answer_of_the_server_bars_a_question() {
        let (mut pins, mut wanted) = (Pins::default(), Wanted::default());
        let mut differs = |wanted: &mut Wanted, now| {
            pins.add(key(1), (&tail(1), false), 7, now).unwrap();
            wanted.doubt(key(1), pins.remove(&key(1), now), now);
            assert!(wanted.is_doubted(&key(1)));
            assert_eq!(wanted.next(now), Some(key(1)), "the server is asked");
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
            pins.add(key(1), (&tail(1), false), 7, now).unwrap();
            wanted.doubt(key(1), pins.remove(&key(1), now), now);
            wanted.next(now);
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
            pins.add(key(number), (&tail(1), false), 7, 0).unwrap();
            wanted.doubt(key(number), pins.remove(&key(number), 0), 0);
            assert!(wanted.doubts.len() <= DOUBTS && wanted.is_doubted(&key(number)));
        }
    }
}
