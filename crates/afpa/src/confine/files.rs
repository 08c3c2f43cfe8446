//! The files that threads may open: Landlock domains, which a thread can make narrower, but never wider.

use std::os::fd::BorrowedFd;

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, LandlockStatus, NetPort,
    PathBeneath, RestrictionStatus, Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr,
    RulesetError, Scope,
};

/// The newest rights that this was tested with. The kernel's part of them is in force.
const NEWEST: ABI = ABI::V7;

/// Nothing: no file, no folder, no port of its own, no signal to and no abstract socket of others.
pub(super) fn nothing() -> Result<RulesetCreated, RulesetError> {
    // A connection to a server gets its port from the kernel.
    ruleset()?.add_rule(NetPort::new(0, AccessNet::BindTcp))
}

/// Files and folders below these, to be read.
pub(super) fn below<'a>(
    roots: impl IntoIterator<Item = BorrowedFd<'a>>,
) -> Result<RulesetCreated, RulesetError> {
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    roots
        .into_iter()
        .try_fold(ruleset()?, |ruleset, root| ruleset.add_rule(PathBeneath::new(root, read)))
}

fn ruleset() -> Result<RulesetCreated, RulesetError> {
    Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(NEWEST))?
        .handle_access(AccessNet::BindTcp)?
        .scope(Scope::from_all(NEWEST))?
        .create()
}

/// The parts of confinement that the kernel lacks, and the remedy; `None`: it lacks none that matters.
pub(super) fn lacks(entered: &RestrictionStatus) -> Option<String> {
    match entered.landlock {
        LandlockStatus::NotImplemented => {
            Some("the kernel has no Landlock (Linux 5.13, CONFIG_SECURITY_LANDLOCK)".to_owned())
        }
        LandlockStatus::NotEnabled => {
            Some("Landlock is not enabled (add landlock to the kernel's parameter lsm=)".to_owned())
        }
        LandlockStatus::Available { .. } => None,
    }
}
