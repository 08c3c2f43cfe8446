//! The kernel's part of the cache.

mod draft;
pub(crate) mod pin;
mod room;
