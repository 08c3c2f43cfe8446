//! Orders of this machine on their way to the log, and what became of them. An order stays in the queue until the log has
//! it; the queue outlives the process.

mod queued;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::follower::{Log, Position};
use crate::message::Order;
use crate::shown::Shown;
pub use queued::{Fate, Full, Queued};

/// Orders that wait for one log at most.
const MOST_WAITING: usize = 10_000;

/// Changes are not taken when so many wait: there is always room for orders that somebody has given.
const MOST_WITH_CHANGES: usize = MOST_WAITING / 2;

/// Orders of a log under way at a time.
pub(crate) const BATCH: usize = 64;

/// Orders whose fate is remembered.
const MOST_FATES: usize = 4096;

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
