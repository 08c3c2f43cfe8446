//! The queue that most policies use: objects in the order in which they came.

use super::identity::{ByPlace, Place};

/// A queue from which any member can be removed, not only the first: a list that goes through the seats of its members.
#[derive(Default)]
pub(super) struct Order {
    ends: Option<Ends>,
    len: usize,
}

struct Ends {
    first: Place,
    last: Place,
}

/// The neighbours of a member. At an end of the queue it is its own neighbour.
#[derive(Clone, Copy, Default)]
pub(super) struct Link {
    before: Place,
    after: Place,
}

/// A member of a queue: it has a place in one at most.
pub(super) trait Linked {
    fn link(&self) -> Link;
    fn link_mut(&mut self) -> &mut Link;
}

/// A position in the order of time; a later turn is larger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Turn(u64);

/// Hands out turns.
#[derive(Default)]
pub(super) struct Turns(u64);

impl Turns {
    pub(super) fn next(&mut self) -> Turn {
        self.0 += 1;
        Turn(self.0)
    }
}

impl Order {
    /// Puts the member at `place`, which is in no queue, behind all others.
    pub(super) fn push<S: Linked>(&mut self, seats: &mut ByPlace<S>, place: Place) {
        let before = match &mut self.ends {
            Some(ends) => std::mem::replace(&mut ends.last, place),
            None => {
                self.ends = Some(Ends { first: place, last: place });
                place
            }
        };
        link(seats, before, |link| link.after = place);
        link(seats, place, |link| *link = Link { before, after: place });
        self.len += 1;
    }

    /// Takes the member at `place` out of this queue.
    pub(super) fn remove<S: Linked>(&mut self, seats: &mut ByPlace<S>, place: Place) {
        let Some((ends, seat)) = self.ends.as_mut().zip(seats.at(place)) else { return };
        let Link { before, after } = seat.link();
        match (before == place, after == place) {
            (true, true) => self.ends = None,
            (true, false) => {
                ends.first = after;
                link(seats, after, |link| link.before = after);
            }
            (false, true) => {
                ends.last = before;
                link(seats, before, |link| link.after = before);
            }
            (false, false) => {
                link(seats, before, |link| link.after = after);
                link(seats, after, |link| link.before = before);
            }
        }
        self.len -= 1;
    }

    pub(super) fn first(&self) -> Option<Place> {
        self.ends.as_ref().map(|ends| ends.first)
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// All places, in order. Panics where the list contradicts itself.
    pub(super) fn checked<S: Linked>(&self, seats: &ByPlace<S>) -> Vec<Place> {
        let mut found = Vec::with_capacity(self.len);
        let mut next = self.first();
        while let Some(place) = next {
            let Link { before, after } = seats.at(place).expect("a member has a seat").link();
            assert_eq!(before, found.last().copied().unwrap_or(place), "both know each other");
            found.push(place);
            next = (after != place).then_some(after);
        }
        assert_eq!(found.last().copied(), self.ends.as_ref().map(|ends| ends.last));
        assert_eq!(found.len(), self.len);
        found
    }
}

fn link<S: Linked>(seats: &mut ByPlace<S>, place: Place, change: impl FnOnce(&mut Link)) {
    if let Some(seat) = seats.at_mut(place) {
        change(seat.link_mut());
    }
}
