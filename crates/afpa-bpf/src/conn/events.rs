//! Answered requests on their way to the access log.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use afpa_abi::Event;
use libbpf_rs::{RingBuffer, RingBufferBuilder};

use crate::conn::reports::Reports;

/// The reader of the ring buffer. One is enough; it stays on its thread.
pub struct Events<'f> {
    ring: RingBuffer<'f>,
    read: Rc<RefCell<Vec<Event>>>,
}

impl Reports {
    /// Opens the stream of answered requests. Programs do not wake the reader: it must poll.
    pub fn events(&self) -> libbpf_rs::Result<Events<'_>> {
        let read = Rc::new(RefCell::new(Vec::new()));
        let into = Rc::clone(&read);
        let mut builder = RingBufferBuilder::new();
        builder.add(&self.events, move |bytes| {
            into.borrow_mut().extend(Event::from_bytes(bytes));
            0
        })?;
        Ok(Events { ring: builder.build()?, read })
    }
}

impl Events<'_> {
    /// All events that are there, without waiting.
    pub fn drain(&self) -> libbpf_rs::Result<Vec<Event>> {
        self.ring.poll(Duration::ZERO)?;
        self.ring.consume()?;
        Ok(self.read.take())
    }
}
