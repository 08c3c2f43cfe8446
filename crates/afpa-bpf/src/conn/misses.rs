//! What attached servers are asked for: requests for targets that are not pinned, and unsafe requests.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use afpa_abi::{Miss, UNSAFE_ANY, UNSAFE_BITS};
use libbpf_rs::{RingBuffer, RingBufferBuilder};

use crate::conn::listen::SiteNumber;
use crate::load::FastPath;
use crate::net::sum::path_hash;

/// The reader of the ring buffer of misses. One is enough; it stays on its thread.
pub struct Misses<'f> {
    ring: RingBuffer<'f>,
    read: Rc<RefCell<Vec<Missed>>>,
}

/// Site and target of a request.
type Missed = (SiteNumber, Vec<u8>);

impl FastPath {
    /// From now on requests for what is not pinned are reported ([`misses`](Self::misses)), and unsafe ones noted
    /// ([`noted`](Self::noted)). No connection is left unread for that.
    pub fn note_requests(&self) {
        self.region.notes_requests().store(1, Ordering::SeqCst);
    }

    /// Opens the stream of requests for targets that are not pinned: site and target. Programs do not wake the reader: it
    /// must poll. What finds the buffer full is not reported.
    pub fn misses(&self) -> libbpf_rs::Result<Misses<'_>> {
        let read = Rc::new(RefCell::new(Vec::new()));
        let into = Rc::clone(&read);
        let mut builder = RingBufferBuilder::new();
        builder.add(&self.misses, move |bytes| {
            into.borrow_mut().extend(Miss::from_bytes(bytes).and_then(|miss| {
                let path = miss.path.get(..miss.path_length as usize)?;
                Some((miss.site, path.to_vec()))
            }));
            0
        })?;
        Ok(Misses { ring: builder.build()?, read })
    }

    /// Until when an unsafe request for this target, or its response, was on its way: nanoseconds of the clock of
    /// [`monotonic_ns`](crate::monotonic_ns), which may be yet to come; 0: there was none. Other targets may share the
    /// place of the note, and one that may be for any target counts for all.
    pub fn noted(&self, path: &[u8]) -> u64 {
        let seed = self.region.hash_seed().load(Ordering::Relaxed);
        let place = (path_hash(seed, path) >> (64 - UNSAFE_BITS)) as usize;
        let at = |place| self.marks.at(place).load(Ordering::SeqCst);
        at(place).max(at(UNSAFE_ANY))
    }
}

impl Misses<'_> {
    /// All that are there, without waiting.
    pub fn drain(&self) -> libbpf_rs::Result<Vec<(SiteNumber, Vec<u8>)>> {
        self.ring.poll(Duration::ZERO)?;
        self.ring.consume()?;
        Ok(self.read.take())
    }
}
