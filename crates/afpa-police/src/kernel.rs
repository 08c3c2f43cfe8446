//! What the police need of the kernel's part.

use std::sync::atomic::AtomicU64;

use afpa_abi::POLICE_CLASSES;

use crate::bucket::Pace;
use crate::classes::Classes;
use crate::rules::Rules;
use crate::table::Masks;

/// What the kernel is to enforce.
#[derive(Clone, Debug)]
pub struct Enforced<'a> {
    /// Of prefixes.
    pub rules: &'a Rules,
    /// New connections: of a client, of all.
    pub connections: [Pace; 2],
    /// Requests: of a client, of all.
    pub requests: [Pace; 2],
    /// Who is in which class.
    pub classes: &'a Classes,
    /// What each class gets of the new connections of all, by its number.
    pub class_paces: [Pace; POLICE_CLASSES],
    /// What makes a client.
    pub masks: Masks,
}

/// The programs in the kernel, which decide by the same rules.
pub trait PoliceKernel: Send + Sync {
    /// The table of buckets, which user mode and the programs share.
    fn words(&self) -> &[AtomicU64];

    /// The secret of its hash.
    fn seed(&self) -> u64;

    /// Has the programs enforce this from now on. No client that is allowed before and after is refused meanwhile, and
    /// none that is denied before and after is let in.
    ///
    /// # Errors
    /// When the kernel does not take it; then what it enforces is as before, or stricter.
    fn enforce(&self, what: &Enforced<'_>) -> std::io::Result<()>;
}
