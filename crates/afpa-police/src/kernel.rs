//! The interface of the police to the programs in the kernel.

use std::sync::atomic::AtomicU64;

use afpa_abi::POLICE_CLASSES;

use crate::bucket::Pace;
use crate::classes::Classes;
use crate::rules::Rules;
use crate::table::Masks;

/// The rules, rates and classes for the kernel to enforce.
#[derive(Clone, Debug)]
pub struct Enforced<'a> {
    /// The allowed and the denied prefixes.
    pub rules: &'a Rules,
    /// New connections: of a client, of all.
    pub connections: [Pace; 2],
    /// Requests: of a client, of all.
    pub requests: [Pace; 2],
    /// The class of each client.
    pub classes: &'a Classes,
    /// Each class's share of the new connections of all, by the class's number.
    pub class_paces: [Pace; POLICE_CLASSES],
    /// The bits of an address that identify a client.
    pub masks: Masks,
}

/// A program in the kernel that refuses clients by their prefixes alone.
pub trait PrefixKernel: Send + Sync {
    /// Has it refuse by these rules from now on, in steps as those of [`PoliceKernel::enforce`].
    ///
    /// # Errors
    /// When the kernel does not accept them.
    fn refuse_by(&self, rules: &Rules) -> std::io::Result<()>;
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
    /// When the kernel does not accept it. The kernel then enforces the rules of before, or stricter ones.
    fn enforce(&self, what: &Enforced<'_>) -> std::io::Result<()>;
}
