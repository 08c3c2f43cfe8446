//! Orders of this machine on their way to the log, and what became of them. An order stays in the queue until the log has
//! it; the queue outlives the process.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

use crate::follower::Position;
use crate::message::Order;

/// Orders that wait at most.
const MOST_WAITING: usize = 10_000;

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
    waiting: VecDeque<Queued>,
    fates: BTreeMap<u64, (Order, Fate)>,
}

impl Orders {
    /// Those that the process before has left in the queue come first.
    pub fn new(instance: String, left: Vec<Queued>) -> Self {
        let waiting = left.into_iter().take(MOST_WAITING).collect();
        Self { instance, number: 0, waiting, fates: BTreeMap::new() }
    }

    /// Takes an order; its number is for [`fate`](Self::fate).
    ///
    /// # Errors
    /// When too many wait.
    pub fn take(&mut self, order: Order) -> Result<u64, Full> {
        if self.waiting.len() >= MOST_WAITING {
            return Err(Full);
        }
        self.number += 1;
        let id = format!("{}-{}", self.instance, self.number);
        self.waiting.push_back(Queued { id, order: order.clone() });
        self.fates.insert(self.number, (order, Fate::Queued));
        while self.fates.len() > MOST_FATES {
            self.fates.pop_first();
        }
        Ok(self.number)
    }

    /// The first orders that wait. They go on waiting until they are [`settled`](Self::settle).
    pub fn first(&self, most: usize) -> Vec<Queued> {
        self.waiting.iter().take(most).cloned().collect()
    }

    /// All of them.
    pub fn waiting(&self) -> &VecDeque<Queued> {
        &self.waiting
    }

    /// The servers have said what becomes of an order.
    pub fn settle(&mut self, id: &str, fate: Fate) {
        if let Some(place) = self.waiting.iter().position(|queued| queued.id == id) {
            self.waiting.remove(place);
        }
        let number = id.strip_prefix(&self.instance).and_then(|rest| rest.strip_prefix('-'));
        let number = number.and_then(|number| number.parse().ok());
        if let Some((_, known)) = number.and_then(|number: u64| self.fates.get_mut(&number)) {
            *known = fate;
        }
    }

    /// An order and its fate; `None`: there is no such order, or it was long ago.
    pub fn fate(&self, number: u64) -> Option<(&Order, &Fate)> {
        self.fates.get(&number).map(|(order, fate)| (order, fate))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn purge(path: &str) -> Order {
        Order::Purge { arguments: format!("path={path}") }
    }

    #[test]
    fn an_order_waits_until_the_log_has_it() {
        let left = vec![Queued { id: "old-1".to_owned(), order: purge("/old") }];
        let mut orders = Orders::new("new".to_owned(), left);
        let number = orders.take(purge("/a")).unwrap();
        assert_eq!(orders.fate(number), Some((&purge("/a"), &Fate::Queued)));
        let ids: Vec<_> = orders.first(9).into_iter().map(|queued| queued.id).collect();
        assert_eq!(ids, ["old-1", "new-1"]);
        let fate = Fate::Logged(Position { log: 1, sequence: 2 });
        orders.settle("new-1", fate.clone());
        orders.settle("new-1", fate.clone());
        assert_eq!(orders.fate(number), Some((&purge("/a"), &fate)));
        assert_eq!(orders.waiting().len(), 1);
        assert_eq!(orders.fate(9), None);
    }

    #[test]
    fn the_queue_and_the_memory_have_bounds() {
        let mut orders = Orders::new("a".to_owned(), Vec::new());
        for _ in 0..MOST_WAITING {
            orders.take(purge("/")).unwrap();
        }
        assert_eq!(orders.take(purge("/")), Err(Full));
        assert_eq!(orders.fates.len(), MOST_FATES);
    }
}
