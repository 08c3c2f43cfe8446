//! Answered requests on their way to the access log.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use afpa_abi::Event;
use libbpf_rs::{RingBuffer, RingBufferBuilder};

use crate::load::FastPath;

/// Reader of the ring buffer; one is enough, and it stays on its thread.
pub struct Events<'f> {
    ring: RingBuffer<'f>,
    read: Rc<RefCell<Vec<Event>>>,
}

impl FastPath {
    /// Open the stream of answered requests. Programs do not wake the reader: ask it every now and then.
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
    /// Everything that is there, without waiting.
    pub fn drain(&self) -> libbpf_rs::Result<Vec<Event>> {
        self.ring.poll(Duration::ZERO)?;
        self.ring.consume()?;
        Ok(self.read.take())
    }
}
