//! A second reader of a response on its way to the client: a cache.

use std::fmt;

use afpa_framework::Now;

use crate::response::Response;

/// Sees the final response of an exchange as the server sends it. If an attempt fails and another server is
/// asked, `head` is called again, and all calls before it count for nothing.
pub trait Tap: fmt::Debug {
    /// The head has arrived. Says whether the client gets this response.
    fn head(&mut self, response: &Response<'_, '_>, now: Now) -> Passing;

    /// Whether the client gets the interim responses before it.
    fn passes_interim(&self) -> bool {
        true
    }

    /// Whether it would keep this response, whose head has arrived. It counts for nothing else.
    fn would_keep(&self, _response: &Response<'_, '_>, _now: Now) -> bool {
        false
    }

    /// Appends further field lines for the client's head.
    fn put_fields(&self, out: &mut Vec<u8>);

    /// Content has arrived, without its framing.
    fn content(&mut self, data: &[u8]);

    /// All of the content has arrived.
    fn whole(&mut self, now: Now);
}

/// Whether the client gets a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passing {
    /// It does.
    On,
    /// It gets the head alone, because it has asked by HEAD. The exchange reads the response to its end.
    HeadAlone,
    /// It does not: the owner of the tap answers the client. The exchange reads the response to its end.
    Withheld,
}
