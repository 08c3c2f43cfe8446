//! The kernel's part of the cache.

mod draft;
pub(crate) mod pin;
pub(crate) mod pinned;
pub(crate) mod places;
pub(crate) mod room;
pub(crate) mod variant;
