//! S3-FIFO: simple, scalable, scan-resistant.

use std::collections::VecDeque;

use hashbrown::HashMap;

use super::identity::{ByPlace, Place};
use super::order::{Link, Linked, Order, Turn, Turns};
use super::{Newcomer, ObjectId, Policy};

/// Three FIFO queues (Yang and others, "FIFO queues are all you need for cache eviction", SOSP 2023).
///
/// New objects enter the *small* queue, a tenth of the cache. Objects that are used more than once before they
/// reach its end move to the *main* queue; the others are ejected, and only their fingerprints stay in the
/// *ghost* queue. An object that returns while its fingerprint is there enters main at once. Objects in main
/// get another round for each use, three at most. So a scan passes through a tenth of the cache only.
#[derive(Default)]
pub struct S3Fifo {
    queues: Queues,
    seats: ByPlace<Seat>,
}

/// The queues alone: where there are several sets of them, one table holds the seats of all.
#[derive(Default)]
pub(super) struct Queues {
    small: Queue,
    main: Queue,
    ghost: Ghost,
}

#[derive(Default)]
struct Queue {
    order: Order,
    bytes: u64,
}

/// The seat of an object. There are as many as objects, so it is small.
pub(super) struct Seat {
    size: u32,
    fingerprint: u32,
    link: Link,
    uses: u8,
    queue: QueueName,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum QueueName {
    Small,
    Main,
}

/// The small queue ejects when it holds at least one part in this many of all bytes.
const SMALL_SHARE: u64 = 10;
/// The bytes for which an object counts: all of them, up to 4 GiB.
pub(super) fn counted(size: u64) -> u32 {
    u32::try_from(size).unwrap_or(u32::MAX)
}

/// Uses that are remembered at most.
const MOST_USES: u8 = 3;
/// Uses in the small queue that earn a place in main.
const EARNS_MAIN: u8 = 2;

impl Linked for Seat {
    fn link(&self) -> Link {
        self.link
    }

    fn link_mut(&mut self) -> &mut Link {
        &mut self.link
    }
}

impl Seat {
    /// Bytes for which the object counts.
    pub(super) fn size(&self) -> u64 {
        self.size.into()
    }

    pub(super) fn touch(&mut self, count: u32) {
        let count = u8::try_from(count).unwrap_or(MOST_USES);
        self.uses = self.uses.saturating_add(count).min(MOST_USES);
    }
}

impl Policy for S3Fifo {
    fn insert(&mut self, newcomer: Newcomer) {
        self.queues.insert(&mut self.seats, &newcomer);
    }

    fn touch(&mut self, id: ObjectId, count: u32) {
        if let Some(seat) = self.seats.get_mut(id) {
            seat.touch(count);
        }
    }

    fn remove(&mut self, id: ObjectId) {
        self.queues.remove(&mut self.seats, id);
    }

    fn victim(&mut self, _needed: u64) -> Option<ObjectId> {
        self.queues.victim(&mut self.seats)
    }

    fn len(&self) -> usize {
        self.seats.len()
    }

    fn check_invariants(&self) {
        assert_eq!(self.seats.len(), self.queues.len());
        self.queues.check_invariants(&self.seats);
    }
}

impl Queues {
    pub(super) fn len(&self) -> usize {
        self.small.order.len() + self.main.order.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn bytes(&self) -> u64 {
        self.small.bytes.saturating_add(self.main.bytes)
    }

    pub(super) fn insert(&mut self, seats: &mut ByPlace<Seat>, newcomer: &Newcomer) {
        let Newcomer { id, fingerprint, .. } = *newcomer;
        let size = counted(newcomer.size);
        let queue = if self.ghost.recall(fingerprint) { QueueName::Main } else { QueueName::Small };
        seats.insert(id, Seat { size, fingerprint, link: Link::default(), uses: 0, queue });
        self.queue(queue).push(seats, id.place(), size.into());
    }

    pub(super) fn remove(&mut self, seats: &mut ByPlace<Seat>, id: ObjectId) {
        let Some((queue, size)) = seats.get(id).map(|seat| (seat.queue, seat.size())) else {
            return;
        };
        self.queue(queue).take(seats, id.place(), size);
        seats.remove(id);
    }

    /// Each step ejects, promotes or uses up one remembered use, so the search ends.
    pub(super) fn victim(&mut self, seats: &mut ByPlace<Seat>) -> Option<ObjectId> {
        loop {
            let from = self.giving()?;
            let place = self.queue(from).order.first()?;
            let seat = seats.at_mut(place)?;
            let (size, fingerprint) = (seat.size(), seat.fingerprint);
            let (earns, left) = match from {
                QueueName::Small => (EARNS_MAIN, 0),
                QueueName::Main => (1, seat.uses.saturating_sub(1)),
            };
            let is_out = seat.uses < earns;
            seat.uses = left;
            seat.queue = QueueName::Main;
            self.queue(from).take(seats, place, size);
            if !is_out {
                self.main.push(seats, place, size);
                continue;
            }
            let id = seats.id_at(place)?;
            seats.remove(id);
            if from == QueueName::Small {
                self.ghost.remember(fingerprint, self.len());
            }
            return Some(id);
        }
    }

    pub(super) fn check_invariants(&self, seats: &ByPlace<Seat>) {
        for (name, queue) in [(QueueName::Small, &self.small), (QueueName::Main, &self.main)] {
            let places = queue.order.checked(seats);
            let seats = || places.iter().map(|place| seats.at(*place).expect("a seat"));
            assert!(seats().all(|seat| seat.queue == name && seat.uses <= MOST_USES));
            assert_eq!(queue.bytes, seats().map(Seat::size).sum::<u64>());
        }
        self.ghost.check_invariants();
    }

    fn queue(&mut self, name: QueueName) -> &mut Queue {
        match name {
            QueueName::Small => &mut self.small,
            QueueName::Main => &mut self.main,
        }
    }

    /// The queue whose turn it is to give an object.
    fn giving(&self) -> Option<QueueName> {
        let all = self.bytes();
        match (self.small.order.is_empty(), self.main.order.is_empty()) {
            (true, true) => None,
            (true, false) => Some(QueueName::Main),
            (false, true) => Some(QueueName::Small),
            (false, false) if self.small.bytes >= all / SMALL_SHARE => Some(QueueName::Small),
            (false, false) => Some(QueueName::Main),
        }
    }
}

impl Queue {
    fn push(&mut self, seats: &mut ByPlace<Seat>, place: Place, size: u64) {
        self.order.push(seats, place);
        self.bytes += size;
    }

    fn take(&mut self, seats: &mut ByPlace<Seat>, place: Place, size: u64) {
        self.order.remove(seats, place);
        self.bytes -= size;
    }
}

/// Fingerprints of what left the small queue unused, as many as there are objects.
#[derive(Default)]
struct Ghost {
    turns: Turns,
    /// In the order in which they left. An entry that was recalled keeps its place until its turn comes.
    order: VecDeque<(Turn, u32)>,
    known: HashMap<u32, Turn>,
}

impl Ghost {
    fn remember(&mut self, fingerprint: u32, most: usize) {
        let turn = self.turns.next();
        self.known.insert(fingerprint, turn);
        self.order.push_back((turn, fingerprint));
        while self.order.len() > most.max(1) {
            let Some((turn, oldest)) = self.order.pop_front() else { break };
            if self.known.get(&oldest) == Some(&turn) {
                self.known.remove(&oldest);
            }
        }
    }

    fn recall(&mut self, fingerprint: u32) -> bool {
        self.known.remove(&fingerprint).is_some()
    }

    fn check_invariants(&self) {
        let known = |(turn, print): &&(Turn, u32)| self.known.get(print) == Some(turn);
        assert_eq!(self.order.iter().filter(known).count(), self.known.len());
    }
}
