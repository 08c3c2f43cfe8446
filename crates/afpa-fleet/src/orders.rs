//! Orders of this machine on their way to the log, and what became of them. An order stays in the queue until the log has
//! it; the queue outlives the process.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde::{Deserialize, Serialize};

use crate::follower::{Log, Position};
use crate::message::Order;
use crate::shown::Shown;

/// Orders that wait for one log at most.
const MOST_WAITING: usize = 10_000;

/// Changes are not taken when so many wait: there is always room for orders that somebody has given.
const MOST_WITH_CHANGES: usize = MOST_WAITING / 2;

/// Orders of a log under way at a time.
pub(crate) const BATCH: usize = 64;

/// Orders whose fate is remembered.
const MOST_FATES: usize = 4096;

/// An order that waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queued {
    /// Its sender knows it by that.
    pub id: String,
    /// The place in the log of bans at which it may have been sent for the first time; `None`: it never was, or has no need of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Position>,
    /// The number of the last order for its prefix that this machine had read when the servers refused to have this one in its place.
    #[serde(skip)]
    pub(crate) behind: Option<u64>,
    /// The order.
    #[serde(flatten)]
    pub order: Order,
}

impl Queued {
    /// One that was not sent.
    pub fn new(id: String, order: Order) -> Self {
        Self { id, since: None, behind: None, order }
    }

    /// Whether the log has to be read before it is sent: it may be there already, or another one is that this machine does not know.
    pub fn waits_for_log(&self) -> bool {
        self.since.is_some() || self.behind.is_some()
    }
}

/// The fate of an order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "lowercase")]
pub enum Fate {
    /// It waits for the servers.
    Queued,
    /// The log has it here.
    Logged(Position),
    /// The servers will not have it.
    Refused {
        /// The reason, in words.
        why: String,
    },
}

/// Too many orders wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{waiting} orders wait for the servers of the fleet already: see `afpa fleet`")]
pub struct Full {
    /// So many.
    pub waiting: usize,
    /// Another one of its kind was not taken before, and the queue has not been empty since.
    pub again: bool,
}

/// Where an order comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Giver {
    /// Somebody has given it.
    Somebody,
    /// It follows from the requests of any client.
    Change,
}

/// The orders of one machine.
#[derive(Debug)]
pub struct Orders {
    instance: String,
    number: u64,
    /// A queue for each log: neither waits for the other.
    waiting: [VecDeque<Queued>; 2],
    fates: BTreeMap<u64, (Order, Fate)>,
    /// Those of processes before that have been settled here.
    settled: VecDeque<String>,
    changes: u64,
    /// The last place of one of them in the log of purges.
    logged: Option<Position>,
    /// The last place of one of them in the log of bans.
    banned: Option<Position>,
    /// That log, as far as it was read.
    shown: Shown,
    /// An order to purge was done here, and no other machine will hear of it: those that were taken until then have no higher
    /// numbers.
    lost: Option<u64>,
    /// The last order of this process to purge with these arguments that waits.
    last: BTreeMap<String, u64>,
    /// Orders of somebody, and changes, that were not taken since the queue of their log was empty.
    full: [[bool; 2]; 2],
    /// The log of purges was found.
    has_begun: bool,
}

impl Orders {
    /// Those that the process before has left in the queue come first.
    pub fn new(instance: String, left: Vec<Queued>) -> Self {
        let mut orders = Self {
            instance,
            number: 0,
            waiting: [VecDeque::new(), VecDeque::new()],
            fates: BTreeMap::new(),
            settled: VecDeque::new(),
            changes: 0,
            logged: None,
            banned: None,
            shown: Shown::default(),
            lost: None,
            last: BTreeMap::new(),
            full: [[false; 2]; 2],
            has_begun: false,
        };
        orders.take_in(left);
        orders.changes = 0;
        orders
    }

    /// Its orders get the numbers behind this one. A command that asks for the fate of an order may reach the next process of the
    /// machine: where each process begins at a random number, that one has no order of this number.
    #[must_use]
    pub fn numbered_behind(mut self, number: u64) -> Self {
        self.number = number;
        self
    }

    /// Takes in what a process before has left at its end. Its orders were given before those of this one: one to deny that this
    /// process has another order for is not sent any more. Whether there was room for all of them.
    pub fn take_in(&mut self, left: Vec<Queued>) -> bool {
        let own = |order: &Order| matches!(order, Order::Deny { .. }).then(|| order.subject());
        let overtaken: BTreeSet<_> =
            self.fates.values().filter_map(|(order, _)| own(order)).collect();
        let mut known: BTreeSet<_> = self.waiting().map(|queued| queued.id.clone()).collect();
        known.extend(self.settled.iter().cloned());
        let mut has_room = true;
        for queued in left {
            let is_overtaken = own(&queued.order).is_some_and(|one| overtaken.contains(&one));
            if is_overtaken || !known.insert(queued.id.clone()) {
                continue;
            }
            let waiting = &mut self.waiting[queued.order.log().index()];
            has_room &= waiting.len() < MOST_WAITING;
            if waiting.len() < MOST_WAITING {
                waiting.push_back(queued);
            }
        }
        self.changes += 1;
        has_room
    }

    /// Takes an order of somebody; its number is for [`fate`](Self::fate). It may be that of an equal one to purge that goes to
    /// the log later.
    ///
    /// # Errors
    /// When too many wait.
    pub fn take(&mut self, order: Order) -> Result<u64, Full> {
        let equal = self.equal(&order).filter(|number| self.fates.contains_key(number));
        if let Some(number) = equal {
            return Ok(number);
        }
        let number = self.add(order.clone(), Giver::Somebody)?;
        self.fates.insert(number, (order, Fate::Queued));
        while self.fates.len() > MOST_FATES {
            self.fates.pop_first();
        }
        Ok(number)
    }

    /// Takes an order that nobody has given: it follows from a request that has changed something. Nobody asks for its fate.
    ///
    /// # Errors
    /// When many wait: there is room left for orders of somebody.
    pub fn take_change(&mut self, order: Order) -> Result<(), Full> {
        match self.equal(&order) {
            Some(_) => Ok(()),
            None => self.add(order, Giver::Change).map(drop),
        }
    }

    /// The number of an equal order to purge that will go to the log after this moment. One of the first may be on its way
    /// there already: a machine may carry it out before, and then keep an answer that this order is about. Those to deny are
    /// never left out: their order makes a difference.
    fn equal(&self, order: &Order) -> Option<u64> {
        let Order::Purge { arguments } = order else { return None };
        let number = *self.last.get(arguments)?;
        let id = self.id(number);
        let mut first = self.waiting[Log::Purges.index()].iter().take(BATCH);
        // One of everything from before a loss does not make up for it.
        let does_as_much =
            self.lost.is_none_or(|lost| number > lost) || !is_of_everything(arguments);
        (does_as_much && first.all(|queued| queued.id != id)).then_some(number)
    }

    fn add(&mut self, order: Order, giver: Giver) -> Result<u64, Full> {
        let log = order.log();
        let most = match giver {
            Giver::Somebody => MOST_WAITING,
            Giver::Change => MOST_WITH_CHANGES,
        };
        let waiting = self.waiting[log.index()].len();
        if waiting >= most {
            if log == Log::Purges {
                self.lost = Some(self.number);
            }
            let again = std::mem::replace(&mut self.full[log.index()][giver as usize], true);
            return Err(Full { waiting, again });
        }
        self.number += 1;
        self.changes += 1;
        if let Order::Purge { arguments } = &order {
            self.last.insert(arguments.clone(), self.number);
        }
        let id = self.id(self.number);
        self.waiting[log.index()].push_back(Queued::new(id, order));
        Ok(self.number)
    }

    fn id(&self, number: u64) -> String {
        format!("{}-{number}", self.instance)
    }

    /// The number of an order of this process.
    fn number(&self, id: &str) -> Option<u64> {
        id.strip_prefix(&self.instance)?.strip_prefix('-')?.parse().ok()
    }

    /// The log of purges was found, and this is its last order. Processes of this machine before may have given it, or those
    /// before it: the first time it is as one of this process.
    pub fn begin(&mut self, found: Position) {
        if !std::mem::replace(&mut self.has_begun, true) {
            self.logged = later(self.logged, found);
        }
    }

    /// The first orders that wait for a log, and can be under way together: the log of bans keeps the last order for each prefix,
    /// so one waits until the log has those before it for its prefix. The order of purges makes no difference. They go on
    /// waiting until they are [`settled`](Self::settle).
    pub fn first(&self, log: Log, most: usize) -> Vec<Queued> {
        let mut subjects = BTreeSet::new();
        let is_first = |queued: &&Queued| match log {
            Log::Purges => true,
            Log::Bans => subjects.insert(queued.order.subject()),
        };
        self.waiting[log.index()].iter().filter(is_first).take(most).cloned().collect()
    }

    /// All of them, those for each log in their order.
    pub fn waiting(&self) -> impl Iterator<Item = &Queued> {
        self.waiting.iter().flatten()
    }

    /// How many wait.
    pub fn count(&self) -> usize {
        self.waiting.iter().map(VecDeque::len).sum()
    }

    /// Whether other machines cannot know all orders for a log that were done here.
    pub(crate) fn waits(&self, log: Log) -> bool {
        !self.waiting[log.index()].is_empty() || self.has_lost()
    }

    /// Whether an order to purge was done here alone, and the log has none since by which all machines drop everything.
    pub(crate) fn has_lost(&self) -> bool {
        self.lost.is_some()
    }

    /// The place up to which the log of purges may have orders of this machine.
    pub fn logged(&self) -> Option<Position> {
        self.logged
    }

    /// How often those that wait have changed.
    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }

    /// The servers have said what becomes of an order.
    pub fn settle(&mut self, id: &str, fate: Fate) {
        let number = self.number(id);
        for log in Log::ALL {
            let waiting = &mut self.waiting[log.index()];
            let place = waiting.iter().position(|queued| queued.id == id);
            let Some(queued) = place.and_then(|place| waiting.remove(place)) else { continue };
            if waiting.is_empty() {
                self.full[log.index()] = [false; 2];
            }
            match (&queued.order, &fate) {
                (Order::Purge { arguments }, _) => self.settle_purge(arguments, number, &fate),
                (Order::Deny { .. }, Fate::Logged(at)) => {
                    self.banned = later(self.banned, *at);
                    self.shown.taken(queued.order.subject(), id, *at);
                }
                (Order::Deny { .. }, _) => {}
            }
        }
        self.changes += 1;
        let Some(number) = number else {
            if self.settled.len() >= MOST_FATES {
                self.settled.pop_front();
            }
            return self.settled.push_back(id.to_owned());
        };
        if let Some((_, known)) = self.fates.get_mut(&number) {
            *known = fate;
        }
    }

    /// An order to deny is sent by this machine at a place in the log of bans. Whether it was not sent before.
    pub fn attempt(&mut self, id: &str, place: Position) -> bool {
        // Those of this machine before it are no later ones, though it may not have read them yet.
        let place = later(self.banned, place);
        let waiting = &mut self.waiting[Log::Bans.index()];
        let queued = waiting.iter_mut().find(|queued| queued.id == id && queued.since.is_none());
        let Some(queued) = queued else { return false };
        queued.since = place;
        self.changes += 1;
        true
    }

    /// The first attempt came to nothing: the log cannot have the order.
    pub(crate) fn not_sent(&mut self, id: &str) {
        let waiting = &mut self.waiting[Log::Bans.index()];
        if let Some(queued) = waiting.iter_mut().find(|queued| queued.id == id) {
            queued.since = None;
            self.changes += 1;
        }
    }

    /// The number of the order to deny in whose place alone the servers are to have one, in a log: the last one for its prefix that this
    /// machine has read, or 0. So one that they take late, when its sender has given it up, undoes nothing. `None`: that is not
    /// known, or the servers have refused it, and the log has shown no other one since.
    pub fn replaces(&self, queued: &Queued, log: u64) -> Option<u64> {
        let last = self.shown.last(&queued.order.subject(), log)?;
        (queued.behind != Some(last)).then_some(last)
    }

    /// The servers have another order than the `last` that this machine had read, so they did not take one to deny. `is_first`: it
    /// was not sent before, so the log cannot have it.
    pub fn was_behind(&mut self, id: &str, last: Option<u64>, is_first: bool) {
        let waiting = &mut self.waiting[Log::Bans.index()];
        if let Some(queued) = waiting.iter_mut().find(|queued| queued.id == id) {
            queued.behind = last;
            queued.since = queued.since.filter(|_| !is_first);
            self.changes += 1;
        }
    }

    /// The log has shown a message that is none of this version, in the place of an order to deny.
    pub(crate) fn shown_strange(&mut self, subject: String, at: Position) {
        self.shown.note(subject, None, at);
    }

    /// The log has shown an order to deny: if it is one that waits, its acknowledgement was lost.
    pub fn shown(&mut self, id: Option<String>, order: &Order, at: Position) {
        if let Some(id) = &id
            && self.waiting[Log::Bans.index()].iter().any(|queued| queued.id == *id)
        {
            self.settle(id, Fate::Logged(at));
        }
        self.shown.note(order.subject(), id, at);
    }

    /// This machine has read the log of bans. An order that may have been there, and has made room for another one since, is as
    /// one that was acknowledged: sent again, it would undo the other one.
    pub fn settle_overtaken(&mut self) {
        let settled = |queued: &Queued| Some((queued.id.clone(), self.shown.settles(queued)?));
        let settled: Vec<_> = self.waiting[Log::Bans.index()].iter().filter_map(settled).collect();
        for (id, at) in settled {
            self.settle(&id, Fate::Logged(at));
        }
    }

    fn settle_purge(&mut self, arguments: &str, number: Option<u64>, fate: &Fate) {
        if number.is_some() && self.last.get(arguments).copied() == number {
            self.last.remove(arguments);
        }
        match fate {
            Fate::Logged(at) => {
                self.logged = later(self.logged, *at);
                // A question says this place, and whoever is there has dropped what the lost order was about, too.
                let is_later = self.lost.is_some_and(|lost| number > Some(lost));
                if is_later && is_of_everything(arguments) {
                    self.lost = None;
                }
            }
            Fate::Refused { .. } => self.lost = Some(self.number),
            Fate::Queued => {}
        }
    }

    /// An order and its fate; `None`: there is no such order, or it was long ago.
    pub fn fate(&self, number: u64) -> Option<(&Order, &Fate)> {
        self.fates.get(&number).map(|(order, fate)| (order, fate))
    }
}

/// Whether all answers of servers are dropped by a purge with these arguments: those below `/`, of all hosts. One that is
/// written in another way is not known as such.
fn is_of_everything(arguments: &str) -> bool {
    let (mut has_path, mut is_below) = (false, false);
    for pair in arguments.split('&') {
        match pair.split_once('=') {
            Some(("path", "/" | "%2F" | "%2f")) => has_path = true,
            Some(("below", _)) => is_below = true,
            _ => return false,
        }
    }
    has_path && is_below
}

/// The later one of two places: those of another log come after all of the log before.
fn later(before: Option<Position>, at: Position) -> Option<Position> {
    let is_later = |before: &Position| (before.log, before.sequence) > (at.log, at.sequence);
    Some(before.filter(is_later).unwrap_or(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn purge(path: &str) -> Order {
        Order::Purge { arguments: format!("path={path}") }
    }

    fn deny(prefix: &str, denied: bool) -> Order {
        Order::Deny { prefix: prefix.to_owned(), denied }
    }

    #[test]
    fn an_order_waits_until_the_log_has_it() {
        let left = vec![Queued::new("old-1".to_owned(), purge("/old"))];
        let mut orders = Orders::new("new".to_owned(), left);
        let number = orders.take(purge("/a")).unwrap();
        assert_eq!(orders.fate(number), Some((&purge("/a"), &Fate::Queued)));
        let ids: Vec<_> =
            orders.first(Log::Purges, 9).into_iter().map(|queued| queued.id).collect();
        assert_eq!(ids, ["old-1", "new-1"]);
        let fate = Fate::Logged(Position { log: 1, sequence: 2 });
        orders.settle("new-1", fate.clone());
        orders.settle("new-1", fate.clone());
        assert_eq!(orders.fate(number), Some((&purge("/a"), &fate)));
        assert_eq!(orders.count(), 1);
        assert_eq!(orders.fate(9), None);
    }

    #[test]
    fn orders_that_others_cannot_know_are_known() {
        let mut orders = Orders::new("a".to_owned(), Vec::new());
        let at = |log, sequence| Position { log, sequence };
        assert!(!orders.waits(Log::Purges) && orders.logged().is_none());
        for path in ["/1", "/2", "/3"] {
            orders.take(purge(path)).unwrap();
        }
        orders.settle("a-2", Fate::Logged(at(1, 9)));
        orders.settle("a-1", Fate::Logged(at(1, 8)));
        assert_eq!((orders.waits(Log::Purges), orders.logged()), (true, Some(at(1, 9))));
        orders.settle("a-3", Fate::Logged(at(2, 1)));
        assert_eq!((orders.waits(Log::Purges), orders.logged()), (false, Some(at(2, 1))));
        orders.take(purge("/4")).unwrap();
        orders.settle("a-4", Fate::Refused { why: "too long".to_owned() });
        assert!(orders.waits(Log::Purges) && orders.has_lost(), "for good");
    }

    #[test]
    fn the_queue_and_the_memory_have_bounds() {
        let mut orders = Orders::new("a".to_owned(), Vec::new());
        for number in 0..MOST_WAITING {
            orders.take(purge(&format!("/{number}"))).unwrap();
        }
        let full = |again| Err::<u64, _>(Full { waiting: MOST_WAITING, again });
        assert_eq!(orders.take(purge("/")), full(false));
        assert_eq!(orders.take(purge("/")), full(true), "no news");
        assert_eq!(orders.fates.len(), MOST_FATES);
        assert!(orders.take(deny("192.0.2.1", true)).is_ok(), "bans have a queue of their own");
        let left = (0..2).map(|number| Queued::new(format!("old-{number}"), purge("/")));
        assert!(!orders.take_in(left.collect()), "no room");
        assert_eq!(orders.count(), MOST_WAITING + 1);
    }

    fn logged(sequence: u64) -> Fate {
        Fate::Logged(Position { log: 1, sequence })
    }

    #[test]
    fn an_equal_order_waits_once_unless_it_may_be_under_way() {
        let mut orders = Orders::new("a".to_owned(), Vec::new());
        for number in 1..=BATCH {
            orders.take(purge(&format!("/{number}"))).unwrap();
        }
        assert_eq!(orders.take(purge("/1")), Ok(65), "the first may be in the log before");
        assert_eq!(orders.take(purge("/1")), Ok(65));
        assert_eq!(orders.take_change(purge("/1")), Ok(()));
        assert_eq!(orders.count(), BATCH + 1);
        orders.settle("a-1", logged(1));
        assert_eq!(orders.take(purge("/1")), Ok(66), "the other one may be under way now");
        orders.settle("a-65", logged(2));
        assert_eq!(orders.fate(65), Some((&purge("/1"), &logged(2))));
        assert_eq!(orders.fate(66), Some((&purge("/1"), &Fate::Queued)));
        orders.take_change(purge("/change")).unwrap();
        assert_eq!(orders.fate(67), None, "nobody asks");
        assert_eq!(orders.take(purge("/change")), Ok(68), "somebody does");
        for number in 69..=72 {
            let denied = number % 2 == 0;
            assert_eq!(orders.take(deny("::1", denied)), Ok(number), "the last one counts");
        }
    }

    #[test]
    fn changes_leave_room_for_orders_of_somebody() {
        let mut orders = Orders::new("a".to_owned(), Vec::new());
        for _ in 0..MOST_WAITING {
            orders.take_change(purge("/cart")).unwrap();
        }
        assert_eq!(orders.count(), BATCH + 1, "equal ones wait once");
        let mut number = 0;
        let full = loop {
            number += 1;
            if let Err(full) = orders.take_change(purge(&format!("/{number}"))) {
                break full;
            }
        };
        assert_eq!(full, Full { waiting: MOST_WITH_CHANGES, again: false });
        assert_eq!(orders.take_change(purge("/x")), Err(Full { again: true, ..full }));
        assert_eq!(orders.take_change(purge("/cart")), Ok(()), "an equal one waits");
        assert!(orders.has_lost() && orders.take(purge("/y")).is_ok());
        for queued in orders.waiting().cloned().collect::<Vec<_>>() {
            orders.settle(&queued.id, logged(1));
        }
        assert!(orders.last.is_empty());
        for number in 0..MOST_WITH_CHANGES {
            orders.take_change(purge(&format!("/{number}"))).unwrap();
        }
        assert_eq!(orders.take_change(purge("/x")), Err(full), "that is news again");
    }

    #[test]
    fn a_purge_of_everything_makes_up_for_lost_orders() {
        let mut orders = Orders::new("a".to_owned(), Vec::new());
        let everything = || Order::Purge { arguments: "path=%2F&below=yes".to_owned() };
        orders.take(purge("/1")).unwrap();
        orders.take(everything()).unwrap();
        orders.settle("a-1", Fate::Refused { why: "too long".to_owned() });
        orders.settle("a-2", logged(1));
        assert!(orders.has_lost(), "it was given before");
        orders.take(purge("/3")).unwrap();
        orders.settle("a-3", logged(2));
        assert!(orders.has_lost(), "it drops one answer");
        orders.take(everything()).unwrap();
        assert!(orders.has_lost(), "the log does not have it");
        orders.settle("a-4", logged(3));
        assert!(!orders.waits(Log::Purges));
        assert_eq!(orders.logged(), Some(Position { log: 1, sequence: 3 }));
        for number in 0..=BATCH {
            orders.take(purge(&format!("/more/{number}"))).unwrap();
        }
        let waiting = orders.take(everything());
        assert_eq!(orders.take(everything()), waiting);
        orders.settle("a-5", Fate::Refused { why: "too long".to_owned() });
        assert_ne!(orders.take(everything()), waiting, "that one was given before");
        for narrow in ["path=/", "below=yes", "path=/&below=yes&soft=yes", "path=/a&below=yes"] {
            assert!(!is_of_everything(narrow), "{narrow}");
        }
        assert!(!is_of_everything("host=a.test&path=/&below=yes") && !is_of_everything(""));
    }

    #[test]
    fn a_machine_that_has_just_begun_asks_nobody_before_it_has_caught_up() {
        let at = |log, sequence| Position { log, sequence };
        let mut orders = Orders::new("a".to_owned(), Vec::new());
        orders.begin(at(7, 9));
        let asks = |orders: &Orders, place| {
            let (logged, waits) = (orders.logged(), orders.waits(Log::Purges));
            crate::owners::Footing { at: Some(place), logged, waits }.asks()
        };
        assert_eq!(asks(&orders, at(7, 8)), None, "one of the process before may come");
        assert_eq!(asks(&orders, at(7, 9)), Some(at(7, 9)));
        orders.begin(at(7, 12));
        assert_eq!(asks(&orders, at(7, 10)), Some(at(7, 10)), "it has heard of its own ones since");
        assert_eq!(asks(&orders, at(8, 0)), Some(at(8, 0)), "all was dropped since");
    }

    #[test]
    fn one_order_for_a_prefix_is_under_way_at_a_time() {
        let mut orders = Orders::new("a".to_owned(), Vec::new());
        for (prefix, denied) in [("192.0.2.1", true), ("192.0.2.1", false), ("::1", true)] {
            orders.take(deny(prefix, denied)).unwrap();
        }
        orders.take(purge("/")).unwrap();
        let ids = |orders: &Orders, log| {
            orders.first(log, 9).into_iter().map(|queued| queued.id).collect::<Vec<_>>()
        };
        assert_eq!(ids(&orders, Log::Bans), ["a-1", "a-3"]);
        assert_eq!(ids(&orders, Log::Purges), ["a-4"]);
        orders.settle("a-1", Fate::Refused { why: "too long".to_owned() });
        assert_eq!(ids(&orders, Log::Bans), ["a-2", "a-3"]);
    }

    #[test]
    fn an_order_to_deny_that_the_log_shows_does_not_wait_any_more() {
        let at = Position { log: 1, sequence: 4 };
        let left = vec![Queued::new("old-7".to_owned(), deny("::7", true))];
        let mut orders = Orders::new("a".to_owned(), left);
        for denied in [true, false] {
            orders.take(deny("::1", denied)).unwrap();
        }
        for id in ["b-1", "a-1", "a-1", "old-7", "a-9"] {
            orders.shown(Some(id.to_owned()), &deny("::9", true), at);
        }
        assert_eq!(orders.fate(1), Some((&deny("::1", true), &Fate::Logged(at))));
        let waiting: Vec<_> = orders.waiting().map(|queued| queued.id.as_str()).collect();
        assert_eq!(waiting, ["a-2"], "it was given later");
    }

    #[test]
    fn an_order_that_another_one_has_overtaken_is_not_sent_again() {
        let at = |sequence| Position { log: 1, sequence };
        let mut orders = Orders::new("a".to_owned(), Vec::new());
        for prefix in ["::1", "::2", "::3", "::4"] {
            orders.take(deny(prefix, true)).unwrap();
        }
        let waiting =
            |orders: &Orders| orders.waiting().map(|queued| queued.id.clone()).collect::<Vec<_>>();
        orders.shown(Some("b-1".to_owned()), &deny("::2", false), at(9));
        for id in ["a-1", "a-2", "a-3"] {
            assert!(orders.attempt(id, at(9)) && !orders.attempt(id, at(20)), "the first counts");
        }
        // The log had a-1, and its acknowledgement was lost; b-2 has deleted it. No other one can be later than those here.
        orders.shown(Some("b-2".to_owned()), &deny("::1", false), at(11));
        orders.shown(None, &deny("::4", false), at(12));
        assert_eq!(waiting(&orders).len(), 4, "it may be acknowledged still");
        orders.not_sent("a-3");
        orders.shown(None, &deny("::3", false), at(13));
        orders.settle_overtaken();
        assert_eq!(waiting(&orders), ["a-2", "a-3", "a-4"]);
        assert_eq!(orders.fate(1).unwrap().1, &Fate::Logged(at(11)));
        orders.settle("a-2", logged(14));
        assert!(orders.take(deny("::2", false)) == Ok(5) && orders.attempt("a-5", at(13)));
        orders.shown(Some("a-2".to_owned()), &deny("::2", true), at(14));
        orders.settle_overtaken();
        assert_eq!(waiting(&orders), ["a-3", "a-4", "a-5"], "its own one before is not later");
        let anew = Position { log: 2, sequence: 1 };
        orders.shown(None, &deny("::2", true), anew);
        orders.settle_overtaken();
        assert_eq!(waiting(&orders), ["a-3", "a-4"]);
    }

    #[test]
    fn an_order_to_deny_has_the_place_of_the_last_one_that_was_read() {
        let at = |log, sequence| Position { log, sequence };
        let mut orders = Orders::new("a".to_owned(), Vec::new());
        for prefix in ["::1", "::2"] {
            orders.take(deny(prefix, true)).unwrap();
        }
        let replaces = |orders: &Orders, id: &str, log| {
            let queued = orders.waiting().find(|queued| queued.id == id).unwrap();
            orders.replaces(queued, log)
        };
        assert_eq!(replaces(&orders, "a-1", 1), Some(0));
        orders.shown(Some("b-1".to_owned()), &deny("::1", false), at(1, 7));
        assert_eq!((replaces(&orders, "a-1", 1), replaces(&orders, "a-2", 1)), (Some(7), Some(0)));
        assert_eq!(replaces(&orders, "a-1", 2), Some(0), "another log");
        assert!(orders.attempt("a-1", at(1, 7)));
        orders.was_behind("a-1", Some(7), true);
        assert!(orders.waiting().next().unwrap().waits_for_log());
        assert_eq!(replaces(&orders, "a-1", 1), None, "somebody has taken it out of the log");
        orders.shown(Some("b-2".to_owned()), &deny("::1", false), at(1, 8));
        assert_eq!(replaces(&orders, "a-1", 1), Some(8));
        assert!(orders.attempt("a-1", at(1, 8)), "the log cannot have it yet");
        orders.was_behind("a-1", Some(8), false);
        assert!(!orders.attempt("a-1", at(1, 9)), "the first attempt counts");
        orders.settle("a-1", logged(10));
        orders.take(deny("::1", false)).unwrap();
        assert_eq!(replaces(&orders, "a-3", 1), Some(10), "its own one before, which was not read");
        orders.shown(Some("b-2".to_owned()), &deny("::2", true), at(1, 9));
        orders.shown_strange("::2".to_owned(), at(1, 11));
        assert_eq!(replaces(&orders, "a-2", 1), Some(11));
    }

    #[test]
    fn an_order_left_by_a_process_is_judged_by_what_the_log_has_shown_before() {
        let at = |sequence| Position { log: 1, sequence };
        let left = |number: u32, prefix, since: Option<u64>| Queued {
            since: since.map(at),
            ..Queued::new(format!("old-{number}"), deny(prefix, true))
        };
        let mut orders = Orders::new("new".to_owned(), Vec::new());
        for (id, prefix, sequence) in [("old-1", "::1", 10), ("b-1", "::2", 11), ("b-2", "::3", 8)]
        {
            orders.shown(Some(id.to_owned()), &deny(prefix, false), at(sequence));
        }
        let queue = vec![
            left(1, "::1", Some(10)),
            left(2, "::2", Some(9)),
            left(3, "::3", Some(9)),
            left(4, "::2", None),
        ];
        let text = serde_json::to_string(&queue).unwrap();
        assert_eq!(serde_json::from_str::<Vec<Queued>>(&text).unwrap(), queue, "a file keeps it");
        assert!(orders.take_in(queue));
        orders.settle_overtaken();
        let waiting: Vec<_> = orders.waiting().map(|queued| queued.id.as_str()).collect();
        assert_eq!(waiting, ["old-3", "old-4"], "the others are there, or were");
    }

    #[test]
    fn the_orders_of_the_process_before_come_in_once_and_behind_none_that_is_newer() {
        let queued = |id: &str, order| Queued::new(id.to_owned(), order);
        let old = |number: u32, order| queued(&format!("old-{number}"), order);
        let left = vec![old(1, deny("::1", true)), old(2, purge("/2"))];
        let mut orders = Orders::new("new".to_owned(), left.clone());
        orders.settle("old-1", Fate::Logged(Position { log: 1, sequence: 1 }));
        orders.take(deny("::2", false)).unwrap();
        let more = [old(3, deny("::1", false)), old(4, deny("::2", true)), old(5, purge("/5"))];
        for _ in 0..2 {
            assert!(orders.take_in([&left[..], &more].concat()));
            let ids: Vec<_> = orders.waiting().map(|queued| queued.id.as_str()).collect();
            assert_eq!(ids, ["old-2", "old-5", "new-1", "old-3"]);
        }
    }
}
