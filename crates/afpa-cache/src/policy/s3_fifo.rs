//! S3-FIFO: simple, scalable, scan-resistant.

use std::collections::VecDeque;

use hashbrown::HashMap;

use super::order::{Order, Turn, Turns};
use super::{Newcomer, ObjectId, Policy};

/// Three FIFO queues (Yang and others, "FIFO queues are all you need for cache eviction", SOSP 2023).
///
/// New objects enter the *small* queue, a tenth of the cache. Objects that are used more than once before they
/// reach its end move to the *main* queue; the others are ejected, and only their fingerprints stay in the
/// *ghost* queue. An object that returns while its fingerprint is there enters main at once. Objects in main
/// get another round for each use, three at most. So a scan passes through a tenth of the cache only.
#[derive(Default)]
pub struct S3Fifo {
    turns: Turns,
    small: Queue,
    main: Queue,
    ghost: Ghost,
    seats: HashMap<ObjectId, Seat>,
}

#[derive(Default)]
struct Queue {
    order: Order,
    bytes: u64,
}

struct Seat {
    place: QueueName,
    turn: Turn,
    size: u64,
    uses: u8,
    fingerprint: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum QueueName {
    Small,
    Main,
}

/// The small queue ejects when it holds at least one part in this many of all bytes.
const SMALL_SHARE: u64 = 10;
/// Uses that are remembered at most.
const MOST_USES: u8 = 3;
/// Uses in the small queue that earn a place in main.
const EARNS_MAIN: u8 = 2;

impl Policy for S3Fifo {
    fn insert(&mut self, newcomer: Newcomer) {
        let Newcomer { id, size, fingerprint, .. } = newcomer;
        let place = if self.ghost.recall(fingerprint) { QueueName::Main } else { QueueName::Small };
        let seat = Seat { place, turn: self.turns.next(), size, uses: 0, fingerprint };
        self.queue(place).push(&seat, id);
        self.seats.insert(id, seat);
    }

    fn touch(&mut self, id: ObjectId, count: u32) {
        if let Some(seat) = self.seats.get_mut(&id) {
            let count = u8::try_from(count).unwrap_or(MOST_USES);
            seat.uses = seat.uses.saturating_add(count).min(MOST_USES);
        }
    }

    fn remove(&mut self, id: ObjectId) {
        if let Some(seat) = self.seats.remove(&id) {
            self.queue(seat.place).take(&seat);
        }
    }

    /// Each step ejects, promotes or uses up one remembered use, so the search ends.
    fn victim(&mut self, _needed: u64) -> Option<ObjectId> {
        loop {
            let place = self.giving()?;
            let (_, id) = self.queue(place).order.first()?;
            let mut seat = self.seats.remove(&id)?;
            self.queue(place).take(&seat);
            match place {
                QueueName::Small if seat.uses >= EARNS_MAIN => seat.uses = 0,
                QueueName::Small => {
                    self.ghost.remember(seat.fingerprint, self.seats.len());
                    return Some(id);
                }
                QueueName::Main if seat.uses > 0 => seat.uses -= 1,
                QueueName::Main => return Some(id),
            }
            seat.place = QueueName::Main;
            seat.turn = self.turns.next();
            self.main.push(&seat, id);
            self.seats.insert(id, seat);
        }
    }

    fn len(&self) -> usize {
        self.seats.len()
    }

    fn check_invariants(&self) {
        let mut bytes = [0, 0];
        for (id, seat) in &self.seats {
            let queue = if seat.place == QueueName::Small { &self.small } else { &self.main };
            assert!(queue.order.holds(seat.turn, *id));
            assert!(seat.uses <= MOST_USES);
            bytes[usize::from(seat.place == QueueName::Main)] += seat.size;
        }
        assert_eq!(bytes, [self.small.bytes, self.main.bytes]);
        assert_eq!(self.seats.len(), self.small.order.len() + self.main.order.len());
        self.ghost.check_invariants();
    }
}

impl S3Fifo {
    fn queue(&mut self, place: QueueName) -> &mut Queue {
        match place {
            QueueName::Small => &mut self.small,
            QueueName::Main => &mut self.main,
        }
    }

    /// The queue whose turn it is to give an object.
    fn giving(&self) -> Option<QueueName> {
        let all = self.small.bytes.saturating_add(self.main.bytes);
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
    fn push(&mut self, seat: &Seat, id: ObjectId) {
        self.order.insert(seat.turn, id);
        self.bytes += seat.size;
    }

    fn take(&mut self, seat: &Seat) {
        self.order.remove(seat.turn);
        self.bytes -= seat.size;
    }
}

/// Fingerprints of what left the small queue unused, as many as there are objects.
#[derive(Default)]
struct Ghost {
    turns: Turns,
    /// In the order in which they left. One that was recalled keeps its place until its turn comes.
    order: VecDeque<(Turn, u64)>,
    known: HashMap<u64, Turn>,
}

impl Ghost {
    fn remember(&mut self, fingerprint: u64, most: usize) {
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

    fn recall(&mut self, fingerprint: u64) -> bool {
        self.known.remove(&fingerprint).is_some()
    }

    fn check_invariants(&self) {
        let known = |(turn, print): &&(Turn, u64)| self.known.get(print) == Some(turn);
        assert_eq!(self.order.iter().filter(known).count(), self.known.len());
    }
}
