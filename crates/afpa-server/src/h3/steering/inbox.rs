//! Datagrams that others have received for the connections of a worker.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::net::{SocketAddr, UdpSocket};
use std::rc::Rc;
use std::sync::Arc;

use tokio::sync::oneshot;

use super::super::socket::Arrived;
use super::super::touched::Touched;
use crate::listener::ListenerSettings;

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

/// An address as its endpoint takes it.
pub(in crate::h3) struct Taken {
    pub(in crate::h3) sockets: Vec<Arc<UdpSocket>>,
    pub(in crate::h3) settings: Rc<RefCell<ListenerSettings>>,
    /// Ready when the address is given up.
    pub(in crate::h3) left: oneshot::Receiver<()>,
}

/// The datagrams that wait for the endpoint of a socket.
pub(in crate::h3) struct Inbox {
    /// The address was taken again.
    again: Cell<Option<Taken>>,
    waiting: RefCell<VecDeque<(Arrived, Vec<u8>)>>,
    touched: Rc<Touched>,
}

impl Inbox {
    pub(in crate::h3) fn new(touched: &Rc<Touched>) -> Self {
        Self { again: Cell::default(), waiting: RefCell::default(), touched: Rc::clone(touched) }
    }

    /// Has the endpoint, whose address was given up, serve it again. Returns that by which it is woken.
    pub(in crate::h3) fn take_again(&self, taken: Taken) -> Rc<Touched> {
        self.again.set(Some(taken));
        self.wake();
        Rc::clone(&self.touched)
    }

    pub(in crate::h3) fn again(&self) -> Option<Taken> {
        self.again.take()
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
