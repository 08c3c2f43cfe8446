//! Interfaces, the programs on them, and checksums.

pub(crate) mod attach;
pub(crate) mod carriers;
mod chain;
pub(crate) mod clsact;
pub(crate) mod devices;
pub(crate) mod filters;
mod guard;
pub(crate) mod hooked;
pub(crate) mod interfaces;
pub(crate) mod links;
pub(crate) mod next_hops;
pub(crate) mod port_claim;
mod port_lock;
pub(crate) mod rtnetlink;
pub(crate) mod sum;
pub(crate) mod tcx;
