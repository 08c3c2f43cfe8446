//! Connections of FastCGI that carry no more requests, and that their servers are to end first.
//!
//! A process of PHP waits behind its answer for the end of the connection, and takes no other request before. So each of these
//! connections has a task, and does not wait for a look at a list. It lies here all the same, so that it can be given up at once.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::iter;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::timeout;

use super::fastcgi::{BySide, FastCgiStream};

/// Such connections, by a number: the longest awaited comes first.
#[derive(Debug, Default)]
pub(super) struct Endings {
    streams: RefCell<BTreeMap<u64, Box<FastCgiStream>>>,
    last: Cell<u64>,
}

impl Endings {
    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.streams.borrow().len()
    }

    /// Closes a connection as soon as its server has ended it, or when `patience` is over. A script may work on behind the
    /// content that it has announced, and is not broken off.
    pub(super) fn end_with_server(self: &Rc<Self>, stream: Box<FastCgiStream>, patience: Duration) {
        let number = self.last.get().wrapping_add(1);
        self.last.set(number);
        self.streams.borrow_mut().insert(number, stream);
        let endings = Rc::clone(self);
        tokio::task::spawn_local(async move {
            let end = poll_fn(|cx| endings.poll_end(number, cx));
            let is_by_server = timeout(patience, end).await == Ok(BySide::Server);
            let ended = endings.streams.borrow_mut().remove(&number);
            if let Some(stream) = ended
                && !is_by_server
            {
                stream.reset_at_end();
            }
        });
    }

    /// The longest awaited, at most so many. Nobody awaits them any more.
    pub(super) fn give_up(&self, most: usize) -> impl Iterator<Item = Box<FastCgiStream>> {
        iter::from_fn(move || self.streams.borrow_mut().pop_first()).map(|(_, one)| one).take(most)
    }

    fn poll_end(&self, number: u64, cx: &mut Context<'_>) -> Poll<BySide> {
        match self.streams.borrow_mut().get_mut(&number) {
            Some(stream) => stream.poll_end(cx),
            // It was given up.
            None => Poll::Ready(BySide::Here),
        }
    }
}
