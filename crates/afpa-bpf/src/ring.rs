//! Reports of the programs, which come by ring buffers.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use libbpf_rs::{MapHandle, RingBuffer, RingBufferBuilder};

/// The reader of a ring buffer. One is enough; it stays on its thread.
pub struct Ring<'m, T> {
    ring: RingBuffer<'m>,
    read: Rc<RefCell<Vec<T>>>,
}

impl<'m, T: 'm> Ring<'m, T> {
    /// `parse` makes a report of the bytes of one.
    pub(crate) fn of(
        map: &'m MapHandle,
        parse: impl Fn(&[u8]) -> Option<T> + 'm,
    ) -> libbpf_rs::Result<Self> {
        let read = Rc::new(RefCell::new(Vec::new()));
        let into = Rc::clone(&read);
        let mut builder = RingBufferBuilder::new();
        builder.add(map, move |bytes| {
            into.borrow_mut().extend(parse(bytes));
            0
        })?;
        Ok(Self { ring: builder.build()?, read })
    }

    /// All reports that are there, without waiting.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn drain(&self) -> libbpf_rs::Result<Vec<T>> {
        self.ring.poll(Duration::ZERO)?;
        self.ring.consume()?;
        Ok(self.read.take())
    }

    /// Those that are there, or come within `patience`.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn wait(&self, patience: Duration) -> libbpf_rs::Result<Vec<T>> {
        self.ring.poll(patience)?;
        Ok(self.read.take())
    }
}
