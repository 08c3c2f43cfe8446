//! Datagrams that others have received for the connections of a worker.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::rc::Rc;

use super::super::peer::Touched;
use super::super::socket::Arrived;

/// A datagram that another worker has received.
#[derive(Debug)]
pub(super) struct Datagram {
    /// The address of the socket.
    pub(super) socket: SocketAddr,
    pub(super) arrived: Arrived,
    pub(super) bytes: Vec<u8>,
}

/// Datagrams that wait for a worker. Further ones are lost, as in a queue of the network.
pub(super) const MOST_WAITING: usize = 1024;

/// The datagrams that wait for the endpoint of a socket.
pub(in crate::h3) struct Inbox {
    waiting: RefCell<VecDeque<(Arrived, Vec<u8>)>>,
    touched: Rc<Touched>,
}

impl Inbox {
    pub(in crate::h3) fn new(touched: &Rc<Touched>) -> Self {
        Self { waiting: RefCell::default(), touched: Rc::clone(touched) }
    }

    pub(super) fn put(&self, arrived: Arrived, bytes: Vec<u8>) {
        let mut waiting = self.waiting.borrow_mut();
        if waiting.len() < MOST_WAITING {
            waiting.push_back((arrived, bytes));
        }
        drop(waiting);
        self.wake();
    }

    pub(in crate::h3) fn take(&self) -> Option<(Arrived, Vec<u8>)> {
        self.waiting.borrow_mut().pop_front()
    }

    pub(in crate::h3) fn is_empty(&self) -> bool {
        self.waiting.borrow().is_empty()
    }

    pub(super) fn wake(&self) {
        self.touched.wake();
    }
}
