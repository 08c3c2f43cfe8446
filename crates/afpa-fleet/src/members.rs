//! The machines that are there, and those that have carried out an order. Times are those since any fixed moment.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::follower::{Log, Position};
use crate::message::{Heartbeat, MOST_MISSED};

/// The time between two heartbeats.
pub(crate) const BEAT: Duration = Duration::from_secs(1);

/// A member that was not heard for so long is silent.
const SILENT: Duration = Duration::from_secs(5);

/// One that was not heard for so long is asked for no answer.
pub(crate) const PEER_SILENT: Duration = Duration::from_millis(2500);

/// A heartbeat is missed after this time, before others that have just come take the fleet for known.
const LATE: Duration = Duration::from_millis(1500);

/// One that was silent for so long is forgotten.
const FORGOTTEN: Duration = Duration::from_secs(3600);

/// After so long a member that has just come has heard of all others.
const SETTLED: Duration = Duration::from_millis(2500);

/// Members that are known at most: anybody with the credentials can send heartbeats.
const MOST: usize = 1024;

/// Clocks that differ by so many seconds are apart: tokens of HTTP/3 do not hold.
const APART: u64 = 15;

/// They are for so long before it is said: a heartbeat may have been on its way for some time.
const APART_FOR: Duration = Duration::from_secs(5);

/// Two processes of one machine are there for less than this time, unless one has handed over to the other.
const BESIDE: Duration = Duration::from_secs(10);

/// The members of a fleet, as one of them knows them.
#[derive(Debug)]
pub struct Members {
    /// This one.
    own: String,
    known: BTreeMap<String, Member>,
    /// Since when the others are heard; `None`: they are not.
    heard_since: Option<Duration>,
}

#[derive(Debug)]
struct Member {
    beat: Heartbeat,
    since: Duration,
    heard: Duration,
    /// Since when its clock is apart from that of this machine.
    apart_since: Option<Duration>,
}

/// A member, as people see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberLook {
    /// Its last heartbeat.
    #[serde(flatten)]
    pub beat: Heartbeat,
    /// Whether it is the one that tells.
    pub is_own: bool,
    /// Seconds for which it has been silent; `None`: it is live.
    pub silent: Option<u64>,
}

/// How far the fleet is with an order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standing {
    /// All that are there are known.
    pub settled: bool,
    /// Names of live members that have carried it out.
    pub done: Vec<String>,
    /// Those of live members that have not.
    pub waiting: Vec<String>,
    /// Those of members that are silent, and the seconds. They carry it out, or flush, when they are back.
    pub silent: Vec<(String, u64)>,
}

impl Standing {
    /// Whether every machine has carried it out.
    pub fn is_done(&self) -> bool {
        self.settled && self.waiting.is_empty() && self.silent.is_empty()
    }
}

impl Members {
    /// A fleet in which the process `own` is alone yet.
    pub fn new(own: String) -> Self {
        Self { own, known: BTreeMap::new(), heard_since: None }
    }

    /// The others can be heard from now on, or cannot any more.
    pub fn listen(&mut self, heard: bool, now: Duration) {
        self.heard_since = heard.then(|| self.heard_since.unwrap_or(now));
    }

    /// A member has said something. Whether it wants to know who is there.
    pub fn heard(&mut self, beat: Heartbeat, now: Duration) -> bool {
        self.forget(now);
        let known = self.known.get(&beat.instance);
        // Nobody without the secret speaks for a machine that has it.
        if known.is_some_and(|member| member.beat.proven && !beat.proven) {
            return false;
        }
        if beat.leaves {
            self.known.remove(&beat.instance);
            return false;
        }
        let asks = beat.asks && beat.instance != self.own;
        let known = self.known.get(&beat.instance);
        let is_late = known.is_some_and(|Member { beat: last, .. }| {
            last.proven == beat.proven && last.number >= beat.number
        });
        if is_late || known.is_none() && self.known.len() >= MOST {
            return false;
        }
        let since = known.map_or(now, |member| member.since);
        let is_apart = beat.ahead.is_some_and(|ahead| ahead.unsigned_abs() >= APART);
        let before = known.and_then(|member| member.apart_since);
        let apart_since = is_apart.then(|| before.unwrap_or(now));
        let member = Member { beat, since, heard: now, apart_since };
        self.known.insert(member.beat.instance.clone(), member);
        asks
    }

    /// All of them, by name.
    pub fn look(&self, now: Duration) -> Vec<MemberLook> {
        let mut all: Vec<_> = self
            .known
            .values()
            .filter(|member| !self.is_replaced(member, now))
            .map(|member| MemberLook {
                beat: member.beat.clone(),
                is_own: member.beat.instance == self.own,
                silent: self.silence(member, now).map(|silence| silence.as_secs()),
            })
            .collect();
        all.extend(self.by_hearsay(now));
        all.sort_by(|a, b| (&a.beat.name, &a.beat.instance).cmp(&(&b.beat.name, &b.beat.instance)));
        all
    }

    /// Names of those of which this one misses a heartbeat, and the seconds: others that have just come may never have heard
    /// them, and would not wait for them.
    pub fn missed(&self, now: Duration) -> Vec<(String, u64)> {
        let silence = |member: &Member| now.saturating_sub(member.heard);
        let is_late =
            |member: &&Member| member.beat.instance != self.own && silence(member) >= LATE;
        let late = self.known.values().filter(is_late);
        let missed = late.filter(|member| !self.is_replaced(member, now));
        missed
            .map(|one| (one.beat.name.clone(), silence(one).as_secs()))
            .take(MOST_MISSED)
            .collect()
    }

    /// Those that this machine has never heard, because it came later than they fell silent: live ones name them.
    fn by_hearsay(&self, now: Duration) -> Vec<MemberLook> {
        let live = self.known.values().filter(|member| self.silence(member, now).is_none());
        let is_known = |name: &str| self.known.values().any(|member| member.beat.name == *name);
        let mut found = BTreeMap::new();
        for (name, seconds) in live.flat_map(|member| &member.beat.missed) {
            if found.len() < MOST && !is_known(name) {
                found.insert(name.clone(), *seconds);
            }
        }
        let look = |(name, seconds)| {
            let beat = Heartbeat { name, ..Heartbeat::default() };
            MemberLook { beat, is_own: false, silent: Some(seconds) }
        };
        found.into_iter().map(look).collect()
    }

    /// How far they are with the order at a place.
    pub fn standing(&self, kind: Log, order: &Position, now: Duration) -> Standing {
        let settled = self.is_settled(now);
        let mut standing = Standing { settled, ..Standing::default() };
        for MemberLook { beat, silent, .. } in self.look(now) {
            let is_done = beat.position(kind).is_some_and(|at| at.is_at(order));
            match silent {
                _ if is_done => standing.done.push(beat.name),
                Some(seconds) => standing.silent.push((beat.name, seconds)),
                None => standing.waiting.push(beat.name),
            }
        }
        standing
    }

    /// Names of live machines that take records, and have not read all up to a place.
    pub fn without_records(&self, place: &Position, now: Duration) -> Vec<String> {
        let live = self.look(now).into_iter().filter(|member| member.silent.is_none());
        let reads =
            live.filter(|member| member.beat.certificates.is_some_and(|at| !at.is_at(place)));
        reads.map(|member| member.beat.name).collect()
    }

    /// The machines that answer questions of others, by their last words, and when these were heard. Of two processes of one
    /// machine it is the later one.
    pub fn peers(&self, now: Duration) -> Vec<(Heartbeat, Duration)> {
        let is_there = |member: &&Member| {
            member.beat.peer.is_some()
                && !member.beat.hands_over
                && now.saturating_sub(member.heard) < PEER_SILENT
        };
        let mut there: Vec<&Member> = self.known.values().filter(is_there).collect();
        there.sort_by(|a, b| (&a.beat.name, b.since).cmp(&(&b.beat.name, a.since)));
        there.dedup_by(|later, first| later.beat.name == first.beat.name);
        there.into_iter().map(|member| (member.beat.clone(), member.heard)).collect()
    }

    /// Whether all that are there can have been heard.
    pub fn is_settled(&self, now: Duration) -> bool {
        self.heard_since.is_some_and(|since| now.saturating_sub(since) >= SETTLED)
    }

    /// Live machines whose clocks are apart from that of this one, and the seconds by which they are ahead.
    pub fn clocks(&self, now: Duration) -> BTreeMap<String, i64> {
        let is_apart = |member: &&Member| {
            let is_long = |since| now.saturating_sub(since) >= APART_FOR;
            member.apart_since.is_some_and(is_long) && self.silence(member, now).is_none()
        };
        let apart = self.known.values().filter(is_apart);
        apart.filter_map(|one| Some((one.beat.name.clone(), one.beat.ahead?))).collect()
    }

    /// Names that two live machines have.
    pub fn twins(&self, now: Duration) -> BTreeSet<String> {
        let (mut names, mut twins) = (BTreeSet::new(), BTreeSet::new());
        for member in self.known.values() {
            let is_young = now.saturating_sub(member.since) < BESIDE;
            if is_young || member.beat.hands_over || self.silence(member, now).is_some() {
                continue;
            }
            if !names.insert(&member.beat.name) {
                twins.insert(member.beat.name.clone());
            }
        }
        twins
    }

    /// How many are live, and how many silent.
    pub fn count(&self, now: Duration) -> (usize, usize) {
        let all = self.look(now);
        let silent = all.iter().filter(|member| member.silent.is_some()).count();
        (all.len() - silent, silent)
    }

    /// This process is never silent to itself.
    fn silence(&self, member: &Member, now: Duration) -> Option<Duration> {
        let silence = now.saturating_sub(member.heard);
        (member.beat.instance != self.own && silence >= SILENT).then_some(silence)
    }

    /// Whether it is a process that has ended: another one has its name, and its cache is not that of the one before.
    fn is_replaced(&self, member: &Member, now: Duration) -> bool {
        let replaces = |other: &Member| {
            other.beat.name == member.beat.name
                && other.beat.instance != member.beat.instance
                && self.silence(other, now).is_none()
        };
        self.silence(member, now).is_some() && self.known.values().any(replaces)
    }

    fn forget(&mut self, now: Duration) {
        let own = &self.own;
        self.known.retain(|instance, member| {
            instance == own || now.saturating_sub(member.heard) < FORGOTTEN
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORDER: Position = Position { log: 1, sequence: 5 };

    fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    fn beat(instance: &str, number: u64, sequence: u64) -> Heartbeat {
        let name = instance.split('-').next().unwrap_or_default().to_owned();
        Heartbeat {
            instance: instance.to_owned(),
            number,
            name,
            purges: Some(Position { log: 1, sequence }),
            ..Heartbeat::default()
        }
    }

    #[test]
    fn an_order_is_done_when_every_live_member_is_beyond_its_place() {
        let mut members = Members::new("a-1".to_owned());
        members.listen(true, seconds(0));
        members.heard(beat("a-1", 1, 5), seconds(1));
        members.heard(beat("b-1", 1, 4), seconds(1));
        let standing = members.standing(Log::Purges, &ORDER, seconds(1));
        assert!(!standing.settled, "others may be there");
        let standing = members.standing(Log::Purges, &ORDER, seconds(3));
        assert_eq!((standing.done, standing.waiting), (vec!["a".into()], vec!["b".into()]));
        members.heard(beat("b-1", 2, 6), seconds(3));
        assert!(members.standing(Log::Purges, &ORDER, seconds(3)).is_done());
        // An older heartbeat that was late says nothing.
        members.heard(beat("b-1", 1, 4), seconds(3));
        assert!(members.standing(Log::Purges, &ORDER, seconds(3)).is_done());
        members.listen(false, seconds(4));
        assert!(!members.standing(Log::Purges, &ORDER, seconds(9)).settled);
    }

    #[test]
    fn silent_members_are_named_until_they_leave_or_another_process_has_their_name() {
        let mut members = Members::new("a-1".to_owned());
        members.listen(true, seconds(0));
        members.heard(beat("a-1", 1, 5), seconds(0));
        members.heard(beat("b-1", 1, 4), seconds(0));
        let silent =
            |members: &Members, now| members.standing(Log::Purges, &ORDER, seconds(now)).silent;
        assert_eq!(silent(&members, 4), []);
        assert_eq!(silent(&members, 7), [("b".to_owned(), 7)]);
        assert_eq!(members.count(seconds(7)), (1, 1));
        members.heard(beat("b-2", 1, 5), seconds(8));
        assert!(members.standing(Log::Purges, &ORDER, seconds(8)).is_done());
        assert_eq!(members.count(seconds(8)), (2, 0));
        members.heard(Heartbeat { leaves: true, ..beat("b-2", 2, 5) }, seconds(9));
        assert_eq!(silent(&members, 9), [("b".to_owned(), 9)]);
        members.heard(beat("a-1", 2, 5), seconds(3601));
        assert_eq!(members.count(seconds(3601)), (1, 0), "forgotten");
    }

    #[test]
    fn one_that_has_just_come_hears_of_silent_ones() {
        let mut b = Members::new("b-1".to_owned());
        b.listen(true, seconds(0));
        b.heard(beat("x-1", 1, 5), seconds(0));
        b.heard(beat("b-1", 1, 5), seconds(9));
        assert!(b.missed(seconds(1)).is_empty());
        assert_eq!(b.missed(seconds(2)), [("x".to_owned(), 2)], "it is live yet");
        let mut a = Members::new("a-2".to_owned());
        a.listen(true, seconds(9));
        a.heard(beat("a-2", 1, 5), seconds(9));
        a.heard(Heartbeat { missed: b.missed(seconds(9)), ..beat("b-1", 2, 5) }, seconds(9));
        let standing = a.standing(Log::Purges, &ORDER, seconds(12));
        assert_eq!(standing.silent, [("x".to_owned(), 9)]);
        assert_eq!((standing.is_done(), a.count(seconds(12))), (false, (2, 1)));
        assert!(a.missed(seconds(10)).is_empty(), "it does not say what it does not know");
        // It is back, also as another process.
        a.heard(beat("x-2", 1, 5), seconds(12));
        assert!(a.standing(Log::Purges, &ORDER, seconds(12)).is_done());
    }

    #[test]
    fn nobody_without_the_secret_speaks_for_a_machine_that_has_it() {
        let mut members = Members::new("a-1".to_owned());
        members.listen(true, seconds(0));
        // A stranger was first, with the greatest number.
        members.heard(beat("b-1", u64::MAX, 9), seconds(1));
        let proven = |number| Heartbeat { proven: true, ..beat("b-1", number, 5) };
        members.heard(proven(1), seconds(1));
        members.heard(beat("b-1", u64::MAX, 9), seconds(2));
        members.heard(Heartbeat { leaves: true, ..beat("b-1", u64::MAX, 9) }, seconds(2));
        members.heard(proven(2), seconds(3));
        let look = members.look(seconds(3));
        assert_eq!(look.iter().map(|one| one.beat.number).collect::<Vec<_>>(), [2]);
        members.heard(Heartbeat { leaves: true, ..proven(3) }, seconds(4));
        assert!(members.look(seconds(4)).is_empty());
    }

    #[test]
    fn two_live_processes_with_one_name_both_count() {
        let mut members = Members::new("a-1".to_owned());
        members.listen(true, seconds(0));
        members.heard(beat("a-1", 1, 5), seconds(3));
        members.heard(beat("a-2", 1, 4), seconds(3));
        assert_eq!(members.standing(Log::Purges, &ORDER, seconds(3)).waiting, ["a"]);
        assert!(
            members.twins(seconds(3)).is_empty(),
            "one may have been started instead of the other"
        );
        members.heard(beat("a-2", 2, 4), seconds(13));
        assert_eq!(members.twins(seconds(13)).into_iter().collect::<Vec<_>>(), ["a"]);
        members.heard(Heartbeat { hands_over: true, ..beat("a-2", 3, 4) }, seconds(14));
        assert!(members.twins(seconds(14)).is_empty());
        members.heard(beat("a-2", 4, 4), seconds(15));
        assert!(members.twins(seconds(20)).is_empty(), "it is silent");
    }

    #[test]
    fn a_clock_that_is_apart_for_some_time_is_named() {
        let mut members = Members::new("a-1".to_owned());
        let mut number = 0;
        let mut hear = |members: &mut Members, ahead, now| {
            number += 1;
            members.heard(Heartbeat { ahead, ..beat("b-1", number, 1) }, seconds(now));
            members.clocks(seconds(now)).into_iter().collect::<Vec<_>>()
        };
        let b = |ahead| vec![("b".to_owned(), ahead)];
        assert_eq!(hear(&mut members, Some(-15), 1), []);
        assert_eq!(hear(&mut members, Some(-16), 5), []);
        assert_eq!(hear(&mut members, Some(-16), 6), b(-16));
        assert_eq!(hear(&mut members, Some(14), 7), [], "it is set");
        assert_eq!(hear(&mut members, Some(i64::MIN), 8), []);
        assert_eq!(hear(&mut members, Some(100), 13), b(100));
        assert_eq!(members.clocks(seconds(20)), BTreeMap::new(), "it is silent");
        assert_eq!(hear(&mut members, None, 21), [], "it does not say");
    }

    #[test]
    fn strangers_cannot_fill_the_memory() {
        let mut members = Members::new("a-1".to_owned());
        for number in 0..2 * MOST {
            members.heard(beat(&format!("x{number}"), 1, 1), seconds(0));
        }
        assert_eq!(members.known.len(), MOST);
    }
}
