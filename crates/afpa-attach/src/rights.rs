//! Rights are given up by each thread that is there. In Linux capabilities, their bounding set, `no_new_privs` and filters of system
//! calls belong to threads: those made later inherit them, and those made before keep what they had.

use std::sync::Arc;

use crate::stranger::Stranger;

/// The rights that an attachment needs for as long as it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rights {
    /// Nothing: maps and links are used by their descriptors.
    None,
    /// `CAP_NET_ADMIN`: where the kernel has no tcx, the programs are filters, which only a process with this right
    /// takes off again.
    NetAdmin,
}

/// A step in giving rights up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A thread besides the first has made what it needs rights for. It keeps those with which the process becomes another user,
    /// because the C library has every thread take that step.
    Thread,
    /// The process, by its first thread, has made everything, and keeps only these.
    Process(Rights),
    /// That thread, after the process, keeps nothing.
    ThreadAfterProcess,
}

/// Takes a step on the calling thread.
pub type DropRights = Arc<dyn Fn(Step) -> anyhow::Result<()> + Send + Sync>;

/// Has the stranger take a step, if there is one.
pub(crate) fn step_of_stranger(
    stranger: Option<&Stranger>,
    drop_rights: &DropRights,
    step: Step,
) -> anyhow::Result<()> {
    let drop_rights = Arc::clone(drop_rights);
    stranger.map_or(Ok(()), |stranger| stranger.act(move || drop_rights(step)))
}

/// Drops the rights of the process. The only thread besides the calling one is the stranger.
pub(crate) fn drop_all(
    stranger: Option<&Stranger>,
    drop_rights: &DropRights,
    kept: Rights,
) -> anyhow::Result<()> {
    drop_rights(Step::Process(kept))?;
    step_of_stranger(stranger, drop_rights, Step::ThreadAfterProcess)
}
