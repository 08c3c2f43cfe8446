//! The connections that the endpoint's task has to look at.

use std::cell::{Cell, RefCell};
use std::task::Waker;

use quinn_proto::ConnectionHandle;

/// Connections that have something to send, for the endpoint's task. A request touches its connection several times, so a
/// second touch costs no more than a look at a mark.
#[derive(Default)]
pub(super) struct Touched {
    list: RefCell<List>,
    waker: Cell<Option<Waker>>,
}

#[derive(Default)]
struct List {
    /// All that were touched, and some that were forgotten since.
    handles: Vec<ConnectionHandle>,
    /// Whether a connection is among them, by its number, which is that of a place in a slab.
    marks: Vec<bool>,
    /// Marks that are set.
    count: usize,
}

impl Touched {
    /// A connection has something to send.
    pub(super) fn touch(&self, handle: ConnectionHandle) {
        let is_new = self.list.borrow_mut().add(handle);
        if is_new {
            self.wake();
        }
    }

    /// A connection is being looked at.
    pub(super) fn forget(&self, handle: ConnectionHandle) {
        let mut list = self.list.borrow_mut();
        list.unmark(handle);
        if list.count == 0 {
            list.handles.clear();
        }
    }

    pub(super) fn wake(&self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    /// Moves the touched connections into `taken`, which is empty. The endpoint's task looks at them now.
    pub(super) fn take(&self, taken: &mut Vec<ConnectionHandle>) {
        let mut list = self.list.borrow_mut();
        std::mem::swap(&mut list.handles, taken);
        taken.retain(|handle| list.unmark(*handle));
    }

    /// The endpoint's task waits.
    pub(super) fn wait(&self, waker: &Waker) {
        self.waker.set(Some(waker.clone()));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.list.borrow().count == 0
    }
}

impl List {
    /// Adds a connection. Returns whether it is new in the list.
    fn add(&mut self, handle: ConnectionHandle) -> bool {
        if self.marks.len() <= handle.0 {
            self.marks.resize(handle.0 + 1, false);
        }
        let is_new =
            self.marks.get_mut(handle.0).is_some_and(|mark| !std::mem::replace(mark, true));
        if is_new {
            self.count += 1;
            self.handles.push(handle);
        }
        is_new
    }

    /// Takes the mark of a connection away. Returns whether it had one.
    fn unmark(&mut self, handle: ConnectionHandle) -> bool {
        let was_there = self.marks.get_mut(handle.0).is_some_and(std::mem::take);
        self.count -= usize::from(was_there);
        was_there
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_taken_once_and_those_that_were_forgotten_are_not() {
        let touched = Touched::default();
        let [a, b, c] = [7, 0, 3].map(ConnectionHandle);
        let take = || {
            let mut taken = Vec::new();
            touched.take(&mut taken);
            taken
        };
        assert!(touched.is_empty() && take().is_empty());
        [a, b, a, c, b].into_iter().for_each(|handle| touched.touch(handle));
        assert_eq!(take(), [a, b, c]);
        assert!(touched.is_empty() && take().is_empty());
        [a, b].into_iter().for_each(|handle| touched.touch(handle));
        touched.forget(a);
        touched.forget(c);
        touched.touch(a);
        assert_eq!(take(), [a, b], "forgotten, and touched again: once");
        touched.touch(a);
        touched.forget(a);
        assert!(touched.is_empty() && take().is_empty());
    }
}
