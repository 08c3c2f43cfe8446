//! The open connections of a core: their deadlines, and how to wake them.

use std::cell::{Cell, RefCell};
use std::task::Waker;

use slab::Slab;

/// All open connections of a core.
#[derive(Debug, Default)]
pub(crate) struct Table {
    places: RefCell<Slab<ConnectionEntry>>,
    /// Whether any listener was ever given up.
    any_leaving: Cell<bool>,
}

/// The entry of one connection.
#[derive(Debug, Default)]
struct ConnectionEntry {
    /// Steady milliseconds at which the wait of the connection expires; `None`: never.
    deadline: Option<u64>,
    /// Waits for a new request, and may be closed when the core drains.
    idle: bool,
    /// The number of its listener.
    listener: u32,
    /// The listener was given up.
    leaving: bool,
    expired: bool,
    /// It wants to be woken by the next sweep.
    looks: bool,
    waker: Option<Waker>,
}

impl Table {
    pub(crate) fn enter(&self, listener: u32) -> usize {
        self.places.borrow_mut().insert(ConnectionEntry { listener, ..ConnectionEntry::default() })
    }

    pub(crate) fn leave(&self, index: usize) {
        self.places.borrow_mut().try_remove(index);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.places.borrow().is_empty()
    }

    /// Sets the deadline of the connection's wait from now on, and whether it waits for a new request.
    pub(crate) fn set(&self, index: usize, deadline: Option<u64>, idle: bool) {
        if let Some(place) = self.places.borrow_mut().get_mut(index) {
            place.deadline = deadline;
            place.idle = idle;
            place.expired = false;
        }
    }

    /// Registers the waker of a connection that has to wait. Returns true if its wait has expired already.
    pub(crate) fn wait(&self, index: usize, waker: &Waker) -> bool {
        let mut places = self.places.borrow_mut();
        let Some(place) = places.get_mut(index) else { return true };
        place.is_woken_by(waker);
        place.expired
    }

    /// Has the next sweep wake a connection that has to wait.
    pub(crate) fn look_later(&self, index: usize, waker: &Waker) {
        if let Some(place) = self.places.borrow_mut().get_mut(index) {
            place.is_woken_by(waker);
            place.looks = true;
        }
    }

    /// Wakes every connection whose deadline has passed, and those that look for something with each sweep.
    pub(crate) fn expire(&self, steady_ms: u64) {
        self.wake_where(|place| {
            let over = place.deadline.is_some_and(|deadline| deadline <= steady_ms);
            if over {
                place.deadline = None;
                place.expired = true;
            }
            std::mem::take(&mut place.looks) || over
        });
    }

    /// Wakes every connection that waits for a new request.
    pub(crate) fn wake_idle(&self) {
        self.wake_where(|place| place.idle);
    }

    /// Marks all connections of a listener to end, and wakes those that wait for a new request.
    pub(crate) fn give_up(&self, listener: u32) {
        self.any_leaving.set(true);
        self.wake_where(|place| {
            place.leaving |= place.listener == listener;
            place.leaving && place.idle
        });
    }

    /// The number of the listener of a connection.
    pub(crate) fn listener(&self, index: usize) -> u32 {
        self.places.borrow().get(index).map_or(0, |place| place.listener)
    }

    /// Whether the listener of the connection was given up.
    pub(crate) fn is_leaving(&self, index: usize) -> bool {
        self.any_leaving.get() && self.places.borrow().get(index).is_some_and(|place| place.leaving)
    }

    fn wake_where(&self, mut chosen: impl FnMut(&mut ConnectionEntry) -> bool) {
        for (_, place) in self.places.borrow_mut().iter_mut() {
            if chosen(place)
                && let Some(waker) = place.waker.as_ref()
            {
                waker.wake_by_ref();
            }
        }
    }
}

impl ConnectionEntry {
    fn is_woken_by(&mut self, waker: &Waker) {
        if !self.waker.as_ref().is_some_and(|known| known.will_wake(waker)) {
            self.waker = Some(waker.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_expires_once_and_a_new_wait_starts_afresh() {
        let table = Table::default();
        let index = table.enter(0);
        table.set(index, Some(100), true);
        table.expire(99);
        assert!(!table.wait(index, Waker::noop()));
        table.expire(100);
        assert!(table.wait(index, Waker::noop()));
        table.set(index, None, false);
        table.expire(1_000_000);
        assert!(!table.wait(index, Waker::noop()), "no deadline, no expiry");
        table.leave(index);
        assert!(table.is_empty());
        assert!(table.wait(index, Waker::noop()), "who is not in the table is over");
    }

    #[test]
    fn the_next_sweep_wakes_one_that_looks_later_once() {
        use std::sync::atomic::{AtomicU32, Ordering};
        struct Count(AtomicU32);
        impl std::task::Wake for Count {
            fn wake(self: std::sync::Arc<Self>) {
                self.0.fetch_add(1, Ordering::Relaxed);
            }
        }
        let woken = std::sync::Arc::new(Count(AtomicU32::new(0)));
        let table = Table::default();
        let index = table.enter(0);
        table.set(index, Some(1000), false);
        table.look_later(index, &std::sync::Arc::clone(&woken).into());
        let counts = [1, 2].map(|now| {
            table.expire(now);
            woken.0.load(Ordering::Relaxed)
        });
        assert_eq!(counts, [1, 1]);
        assert!(!table.wait(index, Waker::noop()), "its wait has not expired");
    }

    #[test]
    fn connections_of_a_listener_that_is_given_up_leave_and_later_ones_do_not() {
        let table = Table::default();
        let (old, other) = (table.enter(1), table.enter(2));
        assert!(!table.is_leaving(old));
        table.give_up(1);
        let new = table.enter(1);
        assert_eq!([old, other, new].map(|index| table.is_leaving(index)), [true, false, false]);
    }
}
