//! Answered requests on their way to the access log.

use afpa_abi::Event;

use crate::conn::reports::Reports;
use crate::ring::Ring;

/// The reader of the answered requests.
pub type Events<'f> = Ring<'f, Event>;

impl Reports {
    /// Opens the stream of answered requests. Programs do not wake the reader: it must poll.
    pub fn events(&self) -> libbpf_rs::Result<Events<'_>> {
        Ring::of(&self.events, Event::from_bytes)
    }
}
