//! Caching by a shared cache (RFC 9111), without I/O: whether a response may be stored, how long it is fresh, and
//! whether a stored one may answer a request.
//!
//! A response travels through the modules in this order:
//!
//! 1. [`ResponseFacts::of`] reads the fields of its head that matter ([`control`], [`targeted`]);
//! 2. [`store::judge`] says whether it may be stored, and if not, why;
//! 3. [`vary`] gives the part of the key that its `Vary` asks for;
//! 4. [`freshness`] knows its age and its lifetime at any moment;
//! 5. [`reuse::judge`] says how a request that finds it stored is answered;
//! 6. [`parts`] combines parts of a representation;
//! 7. [`cache_status`] tells the client about it;
//! 8. [`snapshot`] takes it from one process to the next.
//!
//! Sections without another name are those of RFC 9111. Times are seconds since the Unix epoch, lifetimes
//! and ages are seconds.

pub mod cache_status;
pub mod condition;
pub mod control;
mod facts;
pub mod fields;
pub mod freshness;
mod invalidation;
mod packed;
pub mod parts;
pub mod reuse;
pub mod snapshot;
pub mod store;
pub mod targeted;
pub mod vary;

#[cfg(test)]
mod tests;

pub use control::{RequestControl, ResponseControl};
pub use facts::{Expires, ResponseFacts, StoredFacts};
pub use invalidation::{
    HeadSays, Version, head_says, invalidates, may_answer_get, same_origin_path,
};
pub use packed::Optional;
pub use reuse::StoredControl;
