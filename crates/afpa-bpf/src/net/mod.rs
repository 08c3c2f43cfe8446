//! Interfaces, the programs on them, and checksums.

pub(crate) mod attach;
pub(crate) mod carriers;
pub(crate) mod interfaces;
pub(crate) mod links;
mod rtnetlink;
pub(crate) mod sum;
