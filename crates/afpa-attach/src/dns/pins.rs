//! Pinned answers, and questions that are to be asked. No I/O, no clock.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use afpa_bpf::dns::abi::{DNS_KEYS, DNS_LONG_TAILS, DNS_SETS, DNS_SHORT_TAILS, DNS_WAYS};

use super::answer::{Tail, Unfit};
use super::key::{self, Hash, Key};
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
    /// Where it is pinned.
    pub place: u32,
    /// Its name may be anybody's guess.
    guess: bool,
    /// Since when.
    since: u64,
    /// How many were pinned before it: a key that was pinned again is another one.
    turn: u64,
}

/// All of them, with their tails, which many share.
#[derive(Debug)]
pub struct Pins {
    keys: HashMap<Key, Pin>,
    tails: HashMap<Tail, (u32, u32)>,
    short: Numbers,
    long: Numbers,
    /// Places that have a key.
    taken: Taken,
    /// Those of names that anybody may have thought of, in all and by the edition of their zone.
    guesses: usize,
    guesses_of: HashMap<u32, usize>,
    /// In rounds these are confirmed: the time of the last one, and which.
    round: VecDeque<(u64, Key, u64)>,
    pinned: u64,
}

/// Numbers of tails of one kind, from `first` on.
#[derive(Debug)]
struct Numbers {
    fresh: std::ops::Range<u32>,
    free: Vec<u32>,
    /// Those that programs may still read for a moment.
    fallow: VecDeque<(u64, u32)>,
}

impl Numbers {
    fn new(fresh: std::ops::Range<usize>) -> Self {
        let fresh = fresh.start as u32..fresh.end as u32;
        Self { fresh, free: Vec::new(), fallow: VecDeque::new() }
    }

    fn take(&mut self, now: u64) -> Option<u32> {
        while let Some((since, number)) = self.fallow.front().copied()
            && now.saturating_sub(since) > REST
        {
            self.fallow.pop_front();
            self.free.push(number);
        }
        self.free.pop().or_else(|| self.fresh.next())
    }
}

/// Which places have a key.
#[derive(Debug)]
struct Taken(Vec<bool>);

impl Taken {
    /// A free place for a key; all may be taken while the table is not full, which is seldom.
    fn take(&mut self, hash: Hash) -> Option<u32> {
        let place = hash.places().find(|place| self.0.get(*place) == Some(&false))?;
        self.set(place as u32, true);
        Some(place as u32)
    }

    fn set(&mut self, place: u32, taken: bool) {
        if let Some(known) = self.0.get_mut(place as usize) {
            *known = taken;
        }
    }
}

impl Default for Pins {
    fn default() -> Self {
        Self {
            keys: HashMap::new(),
            tails: HashMap::new(),
            short: Numbers::new(0..DNS_SHORT_TAILS),
            long: Numbers::new(DNS_SHORT_TAILS..DNS_SHORT_TAILS + DNS_LONG_TAILS),
            taken: Taken(vec![false; DNS_SETS * DNS_WAYS]),
            guesses: 0,
            guesses_of: HashMap::new(),
            round: VecDeque::new(),
            pinned: 0,
        }
    }
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
    /// Notes an answer; `guess`: anybody may have thought of its name. Returns its place, the number of its tail, and whether that
    /// must be written first. The key is not pinned yet.
    ///
    /// # Errors
    /// When there is no room.
    pub fn add(
        &mut self,
        (key, hash): (Key, Hash),
        (tail, guess): (&Tail, bool),
        edition: u32,
        now: u64,
    ) -> Result<(u32, u32, NewTail), Unfit> {
        if self.keys.contains_key(&key)
            || self.keys.len() >= MOST
            || (guess && !self.has_room_for_guess(edition))
        {
            return Err(Unfit::Full);
        }
        let place = self.taken.take(hash).ok_or(Unfit::Full)?;
        let Some((number, new)) = self.number_of(tail, now) else {
            self.taken.set(place, false);
            return Err(Unfit::Full);
        };
        if guess {
            self.guesses += 1;
            *self.guesses_of.entry(edition).or_default() += 1;
        }
        let turn = self.pinned;
        self.pinned += 1;
        // Many share one.
        let tail = self.tails.get_key_value(tail).map_or(tail, |(tail, _)| tail).clone();
        let pin = Pin { edition, tail, number, place, guess, since: now, turn };
        self.keys.insert(key.clone(), pin);
        self.round.push_back((now, key, turn));
        Ok((place, number, new))
    }

    fn number_of(&mut self, tail: &Tail, now: u64) -> Option<(u32, NewTail)> {
        if let Some((number, uses)) = self.tails.get_mut(tail) {
            *uses += 1;
            return Some((*number, None));
        }
        let numbers = if tail.is_short() { &mut self.short } else { &mut self.long };
        // Short ones may lie among the long ones, too.
        let number = numbers.take(now).or_else(|| self.long.take(now))?;
        self.tails.insert(tail.clone(), (number, 1));
        Some((number, Some(number)))
    }

    fn has_room_for_guess(&self, edition: u32) -> bool {
        let of_zone = self.guesses_of.get(&edition).copied().unwrap_or(0);
        self.guesses < GUESSES && of_zone < GUESSES_OF_ZONE
    }

    /// Forgets one, if it is there.
    pub fn remove(&mut self, key: &Key, now: u64) -> Option<Pin> {
        let pin = self.keys.remove(key)?;
        self.taken.set(pin.place, false);
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
                let is_short = (pin.number as usize) < DNS_SHORT_TAILS;
                let numbers = if is_short { &mut self.short } else { &mut self.long };
                numbers.fallow.push_back((now, pin.number));
            }
        }
        Some(pin)
    }

    /// Those that `which` chooses, as of this moment.
    pub fn choose(&self, which: impl Fn(&Key, &Pin) -> bool) -> Vec<Key> {
        self.keys.iter().filter(|(key, pin)| which(key, pin)).map(|(key, _)| key.clone()).collect()
    }

    /// The next one of the round, and whether its life is over. None: it is not time yet.
    pub fn next_of_round(&mut self, now: u64) -> Option<(Key, Pin, bool)> {
        while let Some((last, ..)) = self.round.front()
            && now.saturating_sub(*last) >= ROUND
            && let Some((_, key, turn)) = self.round.pop_front()
        {
            if let Some(pin) = self.keys.get(&key).filter(|pin| pin.turn == turn) {
                let (pin, is_over) = (pin.clone(), now.saturating_sub(pin.since) > LIFE);
                self.round.push_back((now, key.clone(), turn));
                return Some((key, pin, is_over));
            }
        }
        None
    }

    /// Whether this very answer is pinned still.
    pub fn is_pinned(&self, key: &Key, pin: &Pin) -> bool {
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
    seen: HashMap<Key, u64>,
    queue: VecDeque<Key>,
    queued: HashSet<Key>,
    /// Not before these times, in their order.
    later: BTreeMap<(u64, u64), Key>,
    numbered: u64,
    /// Until when a question is left alone, and why.
    left: HashMap<Key, (u64, Unfit)>,
    /// Differences that the programs found.
    doubts: HashMap<Key, Doubt>,
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
    pub fn saw(&mut self, key: Key, now: u64) {
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
    pub fn want(&mut self, key: Key) {
        if self.queued.len() < REMEMBERED && self.queued.insert(key.clone()) {
            self.queue.push_back(key);
        }
    }

    /// Ask for it at this time.
    pub fn want_at(&mut self, key: Key, at: u64) {
        if self.queued.len() < REMEMBERED && self.queued.insert(key.clone()) {
            self.numbered += 1;
            self.later.insert((at, self.numbered), key);
        }
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

    /// The next question to ask.
    pub fn next(&mut self, now: u64) -> Option<Key> {
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
pub fn is_purged(key: &Key, name: &[u8], below: bool) -> bool {
    match below {
        true => key::is_below(&key.name, name),
        false => *key.name == *name,
    }
}

#[cfg(test)]
mod tests {
    use super::super::answer::{Exchange, ServerCookie};
    use super::*;
    use afpa_bpf::dns::abi::DnsSeed;

    fn hashed(key: Key) -> (Key, Hash) {
        let mut number = 1u64;
        let mut random = || {
            number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            number ^ number >> 31
        };
        let seed = DnsSeed {
            begin: std::array::from_fn(|_| random()),
            factors: std::array::from_fn(|_| random()),
        };
        let hash = Hash::of(&key, &seed);
        (key, hash)
    }

    fn key(number: u16) -> Key {
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
        let add = |pins: &mut Pins, number, last, now| {
            let added = pins.add(hashed(key(number)), (&tail(last), false), 7, now);
            added.map(|(_, number, new)| (number, new))
        };
        assert_eq!(add(&mut pins, 1, 1, 0), Ok((0, Some(0))));
        assert_eq!(add(&mut pins, 2, 1, 0), Ok((0, None)));
        assert_eq!(add(&mut pins, 3, 2, 0), Ok((1, Some(1))));
        assert!(pins.remove(&key(1), 5).is_some() && pins.remove(&key(2), 5).is_some());
        assert_eq!(add(&mut pins, 4, 3, 6), Ok((2, Some(2))), "0 rests");
        assert_eq!(add(&mut pins, 5, 4, 6 + REST), Ok((0, Some(0))));
        assert_eq!(pins.choose(|_, pin| pin.edition == 7).len(), 3);
    }

    #[test]
    fn each_key_has_a_place_of_its_own() {
        let mut pins = Pins::default();
        let mut places = HashSet::new();
        let mut full = 0;
        for number in 0..MOST {
            let name = key::read(&format!("n{number}.example")).unwrap();
            let (key, hash) = hashed(key::key(&name, 1, 0, 0).unwrap());
            match pins.add((key, hash), (&tail(1), false), 7, 0) {
                Ok((place, ..)) => {
                    assert!(hash.places().contains(&(place as usize)) && places.insert(place));
                }
                Err(_) => full += 1,
            }
        }
        assert!(full < MOST / 50, "{full} of {MOST} have none");
        for key in pins.choose(|_, _| true) {
            pins.remove(&key, 0);
        }
        assert!(pins.taken.0.iter().all(|taken| !taken));
    }

    #[test]
    fn names_that_anybody_may_think_of_leave_room_for_others() {
        let mut pins = Pins::default();
        let name = |zone: u32, at: usize| {
            key::key(&key::read(&format!("n{at}.z{zone}.example")).unwrap(), 1, 0, 0).unwrap()
        };
        let mut fill = |zone: u32| {
            (0..GUESSES)
                .filter(|at| pins.add(hashed(name(zone, *at)), (&tail(1), true), zone, 0).is_ok())
                .count()
        };
        assert_eq!((fill(1), fill(2), fill(3)), (GUESSES_OF_ZONE, GUESSES_OF_ZONE, 0));
        assert!(pins.add(hashed(name(1, 9999)), (&tail(1), false), 1, 0).is_ok(), "another name");
        assert!(pins.remove(&name(1, 0), 0).is_some());
        assert!(pins.add(hashed(name(3, 0)), (&tail(1), true), 3, 0).is_ok());
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
            pins.add(hashed(key(1)), (&tail(1), false), 7, now).unwrap();
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
            pins.add(hashed(key(1)), (&tail(1), false), 7, now).unwrap();
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
            pins.add(hashed(key(number)), (&tail(1), false), 7, 0).unwrap();
            wanted.doubt(key(number), pins.remove(&key(number), 0), 0);
            assert!(wanted.doubts.len() <= DOUBTS && wanted.is_doubted(&key(number)));
        }
    }
}
