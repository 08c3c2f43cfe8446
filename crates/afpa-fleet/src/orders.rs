//! Orders of this machine on their way to the log, and what became of them. An order stays in the queue until the log has
//! it; the queue outlives the process.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde::{Deserialize, Serialize};

use crate::follower::{Log, Position};
use crate::message::Order;

/// Orders that wait for one log at most.
const MOST_WAITING: usize = 10_000;

/// Orders of a log under way at a time.
pub(crate) const BATCH: usize = 64;

/// Orders whose fate is remembered.
const MOST_FATES: usize = 4096;

/// An order that waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queued {
    /// The servers tell by it that a message which comes twice is one.
    pub id: String,
    /// The order.
    #[serde(flatten)]
    pub order: Order,
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
#[error("{MOST_WAITING} orders wait for the servers of the fleet already: see `afpa fleet`")]
pub struct Full;

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
    /// An order to purge was done here, and no other machine will hear of it.
    lost: bool,
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
            lost: false,
        };
        orders.take_in(left);
        orders.changes = 0;
        orders
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

    /// Takes an order; its number is for [`fate`](Self::fate).
    ///
    /// # Errors
    /// When too many wait.
    pub fn take(&mut self, order: Order) -> Result<u64, Full> {
        let waiting = &mut self.waiting[order.log().index()];
        if waiting.len() >= MOST_WAITING {
            self.lost |= order.log() == Log::Purges;
            return Err(Full);
        }
        self.number += 1;
        self.changes += 1;
        let id = format!("{}-{}", self.instance, self.number);
        waiting.push_back(Queued { id, order: order.clone() });
        self.fates.insert(self.number, (order, Fate::Queued));
        while self.fates.len() > MOST_FATES {
            self.fates.pop_first();
        }
        Ok(self.number)
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

    /// Whether an order to purge was done here alone for good.
    pub(crate) fn has_lost(&self) -> bool {
        self.lost
    }

    /// The place of the last order of this machine in the log of purges.
    pub(crate) fn logged(&self) -> Option<Position> {
        self.logged
    }

    /// How often those that wait have changed.
    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }

    /// The servers have said what becomes of an order.
    pub fn settle(&mut self, id: &str, fate: Fate) {
        for waiting in &mut self.waiting {
            if let Some(place) = waiting.iter().position(|queued| queued.id == id)
                && let Some(queued) = waiting.remove(place)
                && queued.order.log() == Log::Purges
            {
                match &fate {
                    Fate::Logged(at) => self.logged = later(self.logged, *at),
                    Fate::Refused { .. } => self.lost = true,
                    Fate::Queued => {}
                }
            }
        }
        self.changes += 1;
        let number = id.strip_prefix(&self.instance).and_then(|rest| rest.strip_prefix('-'));
        let Some(number) = number.and_then(|number| number.parse().ok()) else {
            if self.settled.len() >= MOST_FATES {
                self.settled.pop_front();
            }
            return self.settled.push_back(id.to_owned());
        };
        let number: u64 = number;
        if let Some((_, known)) = self.fates.get_mut(&number) {
            *known = fate;
        }
    }

    /// An order and its fate; `None`: there is no such order, or it was long ago.
    pub fn fate(&self, number: u64) -> Option<(&Order, &Fate)> {
        self.fates.get(&number).map(|(order, fate)| (order, fate))
    }
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
        let left = vec![Queued { id: "old-1".to_owned(), order: purge("/old") }];
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
        for _ in 0..MOST_WAITING {
            orders.take(purge("/")).unwrap();
        }
        assert_eq!(orders.take(purge("/")), Err(Full));
        assert_eq!(orders.fates.len(), MOST_FATES);
        assert!(orders.take(deny("192.0.2.1", true)).is_ok(), "bans have a queue of their own");
        let left = (0..2).map(|number| Queued { id: format!("old-{number}"), order: purge("/") });
        assert!(!orders.take_in(left.collect()), "no room");
        assert_eq!(orders.count(), MOST_WAITING + 1);
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
    fn the_orders_of_the_process_before_come_in_once_and_behind_none_that_is_newer() {
        let queued = |id: &str, order| Queued { id: id.to_owned(), order };
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
