//! Pinned answers. No I/O, no clock.

use std::collections::{BTreeMap, HashMap, VecDeque};

use afpa_bpf::dns::abi::{
    DNS_KEYS, DNS_LONG_TAILS, DNS_PATCHED, DNS_SETS, DNS_SHORT_TAILS, DNS_WAYS, DnsPatch,
};

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
    /// The same as the programs have it, perhaps without an address, and its number.
    stored: Tail,
    number: u32,
    /// Where it is pinned.
    pub place: u32,
    /// Its name may be anybody's guess.
    guess: bool,
    /// Since when.
    since: u64,
    /// How many were pinned before it: a key that was pinned again is another one.
    turn: u64,
    /// When the last round came to it, or when it was pinned.
    confirmed: u64,
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
    /// In rounds these are confirmed: the time of the last one, the turn, and which. A busy server is asked for no round, so those that
    /// are not pinned any more go at once.
    round: BTreeMap<(u64, u64), Key>,
    /// By their turns: the oldest first.
    by_age: BTreeMap<u64, Key>,
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
            round: BTreeMap::new(),
            by_age: BTreeMap::new(),
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
/// An answer lives for an hour at most, however long a round takes: then it is learnt anew, if it is still asked for.
const LIFE: u64 = 3_600_000_000_000;

/// A round takes this long at least, in nanoseconds.
const ROUND: u64 = 10_000_000_000;

/// As many tails lie in a processor's caches. Where there are more, an address stands by its key.
const WHOLE: usize = 1024;

/// A place that was given to a key, and what has to be written before that is pinned there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given {
    /// The place.
    pub place: u32,
    /// The tail, as the pinned word has it.
    pub number: u32,
    /// A tail with its number, if it is not there already.
    pub tail: Option<(u32, Tail)>,
    /// The address that the tail lacks.
    pub patch: Option<DnsPatch>,
}

impl Pins {
    /// Notes an answer; `guess`: anybody may have thought of its name. The key is not pinned yet.
    ///
    /// # Errors
    /// When there is no room.
    pub fn add(
        &mut self,
        (key, hash): (Key, Hash),
        (tail, guess): (&Tail, bool),
        edition: u32,
        now: u64,
    ) -> Result<Given, Unfit> {
        if self.keys.contains_key(&key)
            || self.keys.len() >= MOST
            || (guess && !self.has_room_for_guess(edition))
        {
            return Err(Unfit::Full);
        }
        let place = self.taken.take(hash).ok_or(Unfit::Full)?;
        let Some((stored, number, is_new, patch)) = self.store(tail, now) else {
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
        let stored =
            self.tails.get_key_value(&stored).map_or(stored.clone(), |(tail, _)| tail.clone());
        let tail = if patch.is_some() { tail.clone() } else { stored.clone() };
        let new = is_new.then(|| (number, stored.clone()));
        let (since, confirmed) = (now, now);
        let pin = Pin { edition, tail, stored, number, place, guess, since, turn, confirmed };
        self.keys.insert(key.clone(), pin);
        self.by_age.insert(turn, key.clone());
        self.round.insert((now, turn), key);
        let number = if patch.is_some() { number | DNS_PATCHED as u32 } else { number };
        Ok(Given { place, number, tail: new, patch })
    }

    /// Finds a number for a tail, or for the one that is the same but for its address: that tail, the number, and whether it is new.
    fn store(&mut self, tail: &Tail, now: u64) -> Option<(Tail, u32, bool, Option<DnsPatch>)> {
        let is_whole = self.tails.len() < WHOLE || self.tails.contains_key(tail);
        if let Some((rest, patch)) = tail.without_address().filter(|_| !is_whole)
            && let Some((number, is_new)) = self.number_of(&rest, now)
        {
            if (number as usize) < DNS_SHORT_TAILS {
                return Some((rest, number, is_new, Some(patch)));
            }
            self.release(&rest, number, now); // only short ones can lack an address
        }
        let (number, is_new) = self.number_of(tail, now)?;
        Some((tail.clone(), number, is_new, None))
    }

    fn number_of(&mut self, tail: &Tail, now: u64) -> Option<(u32, bool)> {
        if let Some((number, uses)) = self.tails.get_mut(tail) {
            *uses += 1;
            return Some((*number, false));
        }
        let numbers = if tail.is_short() { &mut self.short } else { &mut self.long };
        // Short ones may lie among the long ones, too.
        let number = numbers.take(now).or_else(|| self.long.take(now))?;
        self.tails.insert(tail.clone(), (number, 1));
        Some((number, true))
    }

    /// One use of a tail is over.
    fn release(&mut self, tail: &Tail, number: u32, now: u64) {
        let Some((_, uses)) = self.tails.get_mut(tail) else { return };
        *uses -= 1;
        if *uses == 0 {
            self.tails.remove(tail);
            let is_short = (number as usize) < DNS_SHORT_TAILS;
            let numbers = if is_short { &mut self.short } else { &mut self.long };
            numbers.fallow.push_back((now, number));
        }
    }

    fn has_room_for_guess(&self, edition: u32) -> bool {
        let of_zone = self.guesses_of.get(&edition).copied().unwrap_or(0);
        self.guesses < GUESSES && of_zone < GUESSES_OF_ZONE
    }

    /// Forgets one, if it is there.
    pub fn remove(&mut self, key: &Key, now: u64) -> Option<Pin> {
        let pin = self.keys.remove(key)?;
        self.by_age.remove(&pin.turn);
        self.round.remove(&(pin.confirmed, pin.turn));
        self.taken.set(pin.place, false);
        if pin.guess {
            self.guesses -= 1;
            if let Some(count) = self.guesses_of.get_mut(&pin.edition) {
                *count -= 1;
            }
            self.guesses_of.retain(|_, count| *count > 0);
        }
        self.release(&pin.stored, pin.number, now);
        Some(pin)
    }

    /// Those that `which` chooses, as of this moment.
    pub fn choose(&self, which: impl Fn(&Key, &Pin) -> bool) -> Vec<Key> {
        self.keys.iter().filter(|(key, pin)| which(key, pin)).map(|(key, _)| key.clone()).collect()
    }

    /// The oldest one, if its life is over.
    pub fn next_over(&self, now: u64) -> Option<Key> {
        let (_, key) = self.by_age.first_key_value()?;
        let pin = self.keys.get(key)?;
        (now.saturating_sub(pin.since) > LIFE).then(|| key.clone())
    }

    /// The next one of the round. None: it is not time yet.
    pub fn next_of_round(&mut self, now: u64) -> Option<(Key, Pin)> {
        let ((last, turn), _) = self.round.first_key_value()?;
        let due = Some((*last, *turn)).filter(|(last, _)| now.saturating_sub(*last) >= ROUND)?;
        let key = self.round.remove(&due)?;
        let pin = self.keys.get_mut(&key)?;
        pin.confirmed = now;
        self.round.insert((now, pin.turn), key.clone());
        Some((key, pin.clone()))
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

/// Whether a purge of this name is about the key: of the name itself, or of all at and below it.
pub fn is_purged(key: &Key, name: &[u8], below: bool) -> bool {
    match below {
        true => key::is_below(&key.name, name),
        false => *key.name == *name,
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::HashSet;

    use super::super::answer::{Exchange, ServerCookie};
    use super::*;
    use afpa_bpf::dns::abi::DnsSeed;

    pub(crate) fn hashed(key: Key) -> (Key, Hash) {
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

    pub(crate) fn key(number: u16) -> Key {
        key::key(&key::read("a.example").unwrap(), number, 0, 0).unwrap()
    }

    pub(crate) fn tail(last: u8) -> Tail {
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
            added.map(|given| (given.number, given.tail.map(|(number, _)| number)))
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
    fn the_oldest_end_first_however_long_a_round_takes() {
        let mut pins = Pins::default();
        let add = |pins: &mut Pins, number, now| {
            assert!(pins.add(hashed(key(number)), (&tail(1), false), 7, now).is_ok());
        };
        for number in 1..=3 {
            add(&mut pins, number, u64::from(number));
        }
        // That of the first is the last now.
        assert!(pins.remove(&key(1), 4).is_some());
        add(&mut pins, 1, 5);
        let confirmed = pins.next_of_round(2 + ROUND).map(|(key, _)| key);
        assert_eq!(confirmed, Some(key(2)), "this makes it no younger");
        assert_eq!(pins.next_over(2 + LIFE), None);
        for number in [2, 3, 1] {
            assert_eq!(pins.next_over(6 + LIFE), Some(key(number)));
            assert!(pins.remove(&key(number), 6 + LIFE).is_some());
        }
        assert_eq!(pins.next_over(u64::MAX), None);
        assert!(pins.by_age.is_empty());
    }

    #[test]
    fn a_round_has_what_is_pinned_and_nothing_else() {
        let mut pins = Pins::default();
        let add = |pins: &mut Pins, number, now| {
            assert!(pins.add(hashed(key(number)), (&tail(1), false), 7, now).is_ok());
        };
        // A zone that changes all the time, on a server that is asked for no round.
        for now in 0..10_000 {
            add(&mut pins, 1, now);
            assert!(pins.remove(&key(1), now).is_some());
        }
        assert!(pins.round.is_empty());
        add(&mut pins, 2, 5);
        add(&mut pins, 3, 5);
        let mut next = |now| pins.next_of_round(now).map(|(key, _)| key);
        assert_eq!((next(4 + ROUND), next(5 + ROUND)), (None, Some(key(2))));
        assert_eq!((next(5 + ROUND), next(5 + ROUND)), (Some(key(3)), None));
        assert_eq!((next(5 + 2 * ROUND), pins.round.len()), (Some(key(2)), 2));
        assert!(pins.remove(&key(2), 0).is_some() && pins.remove(&key(3), 0).is_some());
        assert!(pins.round.is_empty());
    }

    /// An answer with one address of IPv4 and something behind it.
    fn tail_with_address(address: u32, behind: &[u8]) -> Tail {
        let key = key(1);
        let query = key::query(&key, 1, 512, key::Case::Lower, 0);
        let mut answer = query.clone();
        (answer[2], answer[7]) = (0x84, 1);
        answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 14, 16, 0, 4]);
        answer.extend(address.to_be_bytes());
        answer.extend(behind);
        Tail::of(&key, &Exchange { query, answer, cookie: ServerCookie::None }).unwrap()
    }

    #[test]
    fn where_tails_are_many_an_address_stands_by_its_key() {
        let mut pins = Pins::default();
        let name = |number: usize| {
            let name = key::read(&format!("n{number}.example")).unwrap();
            hashed(key::key(&name, 1, 0, 0).unwrap())
        };
        let mut add =
            |number: usize, tail: &Tail| pins.add(name(number), (tail, false), 7, 0).expect("room");
        let of = |number: usize| tail_with_address(number as u32 + 1, b"x");
        for number in 0..WHOLE {
            let given = add(number, &of(number));
            assert_eq!((given.number, given.patch), (number as u32, None));
        }
        let patched = |number: u32| Some(DnsPatch { address: (number + 1).to_be(), at: 12 });
        let first = add(WHOLE, &of(WHOLE));
        let number = WHOLE as u32;
        assert_eq!(first.number, number | DNS_PATCHED as u32);
        assert_eq!(first.patch, patched(number));
        assert_eq!(first.tail, Some((number, tail_with_address(0, b"x"))));
        let second = add(WHOLE + 1, &of(WHOLE + 1));
        assert_eq!((second.tail, second.patch), (None, patched(number + 1)));
        let known = add(WHOLE + 2, &of(5));
        assert_eq!((known.number, known.tail, known.patch), (5, None, None), "it is there whole");
        let long = add(WHOLE + 3, &tail_with_address(9, &[7; 200]));
        assert_eq!((long.number, long.patch), (DNS_SHORT_TAILS as u32, None));
        for number in 0..WHOLE + 4 {
            assert!(pins.remove(&name(number).0, 0).is_some());
        }
        assert!(pins.tails.is_empty());
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
                Ok(Given { place, .. }) => {
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
}
