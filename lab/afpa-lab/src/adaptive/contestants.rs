//! The servers that take part.

/// The server that chooses.
pub(crate) const CHOOSES: &str = "afpa";
/// The servers that are held to one strategy.
pub(crate) const FIXED: [&str; 2] = ["afpa-readiness", "afpa-completion"];
