//! The packet injector: a forwarder in user mode that treats packets badly, and counts it.
//!
//! It stands between two interfaces and passes whole Ethernet frames from one to the other; each
//! direction is a [`Lane`] with its own [`Impairment`]. The lane is pure (time and randomness come
//! from outside), so what it does to a sequence of packets can be tested without any.
//!
//! Offloads must be off on every interface around it: a packet larger than the wire allows is
//! counted as `oversize` and dropped, so that their absence is proven by a zero.

mod forward;
mod lane;
mod mark;
mod rules;

pub use afpa_testkit::Random;
pub use forward::{Forwarder, Injector};
pub use lane::{Counts, Lane};
pub use rules::{Burst, DropRule, Impairment, Rules};
