//! Programs as filters of the clsact queueing discipline, for kernels without tcx.
//!
//! A filter is not tied to a process, as a link is. So the effects that links have by themselves need other means:
//!
//! - When the process ends, however it ends, nothing is answered any more: the kernel empties the map `alive`.
//! - A process that ends by itself removes its filters; the discipline, which others may use by then, it leaves.
//! - The next process that starts on the interface removes the filters of a killed one ([`remove_orphans`]). It knows
//!   them: such a filter runs one of our programs, with an empty `alive`, and is not pinned for a process to take over.
//! - Where connections are to outlive the process, its programs are pinned where links would be, under the same names,
//!   and the next process replaces the filters of these programs by its own, each in one step.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;

use libbpf_rs::libbpf_sys::{BPF_TCX_EGRESS, BPF_TCX_INGRESS, bpf_obj_pin};
use libbpf_rs::{
    MapCore, MapFlags, MapHandle, ProgramImpl, TC_EGRESS, TC_INGRESS, TcAttachPoint, TcHook,
};

use crate::net::filters;
use crate::pin_home::HOME;

/// A filter of ours. It is removed when this is dropped, unless it is kept.
pub(crate) struct Filter {
    program: OwnedFd,
    interface: u32,
    hook: u32,
    priority: u32,
    handle: u32,
    /// The network namespace of the interface.
    namespace: u64,
    kept: bool,
}

/// ENOENT, ENODEV, EINVAL: the kernel's words for a filter that is not there any more.
const GONE: [i32; 3] = [2, 19, 22];

/// The kernel chooses one.
const ANY_PRIORITY: u32 = 0;
/// It begins here, and goes down.
const CHOSEN_BY_KERNEL: u32 = 0xc000;

impl Filter {
    /// Puts a program on a hook, before the filters that are there. Before a filter of another kind with the first
    /// priority there is no place; then it comes behind.
    pub(crate) fn put(program: &OwnedFd, interface: u32, hook: u32) -> io::Result<Self> {
        hook_of(program, interface, hook).create().map_err(system)?;
        let attach = |priority| hook_of(program, interface, hook).priority(priority).attach();
        // A priority that the kernel chooses comes only before those that it chose earlier.
        let tc = match filters::lowest_priority(interface, hook)? {
            Some(lowest @ ..CHOSEN_BY_KERNEL) => {
                attach(lowest.saturating_sub(1).max(1)).or_else(|_| attach(ANY_PRIORITY))
            }
            _ => attach(ANY_PRIORITY),
        };
        let tc = tc.map_err(system)?;
        let (priority, handle) = (tc.get_priority(), tc.get_handle());
        Self::held(program, (interface, hook), priority, handle)
    }

    fn held(
        program: &OwnedFd,
        (interface, hook): (u32, u32),
        priority: u32,
        handle: u32,
    ) -> io::Result<Self> {
        let (program, namespace) = (program.try_clone()?, namespace()?);
        Ok(Self { program, interface, hook, priority, handle, namespace, kept: false })
    }

    /// Puts a program in the place of the one that is pinned at `path`, in one step.
    pub(crate) fn take_over(
        path: &Path,
        program: &OwnedFd,
        interface: u32,
        hook: u32,
    ) -> io::Result<Self> {
        let pinned = ProgramImpl::fd_from_pinned_path(path).map_err(system)?;
        let id = ProgramImpl::id_from_fd(pinned.as_fd()).map_err(system)?;
        let found = filters::on(interface, hook)?.into_iter().find(|found| found.program == id);
        let found = found.ok_or(io::ErrorKind::NotFound)?;
        let filters::Found { priority, handle, .. } = found;
        let mut tc = hook_of(program, interface, hook);
        tc.handle(handle).priority(priority).replace(true).attach().map_err(system)?;
        let mut filter = Self::held(program, (interface, hook), priority, handle)?;
        filter.keep(path)?;
        Ok(filter)
    }

    /// Leaves the filter when the process ends; its program is pinned at `path`, by which it is found again.
    pub(crate) fn keep(&mut self, path: &Path) -> io::Result<()> {
        pin(&self.program, path)?;
        self.kept = true;
        Ok(())
    }

    /// Removes it now, kept or not.
    pub(crate) fn remove(mut self) -> io::Result<()> {
        self.kept = true; // the drop need not try again
        self.take_off()
    }

    fn take_off(&mut self) -> io::Result<()> {
        if namespace()? != self.namespace {
            return Err(io::Error::other("the interface is in another network namespace"));
        }
        let mut tc = hook_of(&self.program, self.interface, self.hook);
        match tc.handle(self.handle).priority(self.priority).detach().map_err(system) {
            Err(error) if GONE.contains(&error.raw_os_error().unwrap_or(0)) => Ok(()),
            other => other,
        }
    }
}

impl Drop for Filter {
    fn drop(&mut self) {
        if !self.kept {
            // Without the right to remove it, the next process that starts does.
            let _left = self.take_off();
        }
    }
}

/// Takes the program that is pinned at `path` off its interface, if it is there.
pub(crate) fn remove_pinned(path: &Path, interface: u32, hook: u32) -> io::Result<()> {
    let pinned = ProgramImpl::fd_from_pinned_path(path).map_err(system)?;
    let id = ProgramImpl::id_from_fd(pinned.as_fd()).map_err(system)?;
    remove_if(interface, hook, |found| found.program == id)
}

/// Takes those programs off their interfaces that are kept in `folder` as filters. Links end with their files,
/// filters do not.
pub(crate) fn remove_kept_filters(folder: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let Some((hook, interface)) = name.split_once('-') else { continue };
        let hook = match hook {
            "ingress" => BPF_TCX_INGRESS,
            "egress" => BPF_TCX_EGRESS,
            _ => continue,
        };
        if let Ok(interface) = interface.parse() {
            // It is a link, or its interface is gone.
            let _none = remove_pinned(&path, interface, hook);
        }
    }
    Ok(())
}

/// Removes the filters that processes left behind which are gone. `own` may share maps with these, when it was taken
/// over from them.
pub(crate) fn remove_orphans(interface: u32, hook: u32, own: &OwnedFd) -> io::Result<()> {
    let own = crate::program::id(own)?;
    let mut kept = pinned_programs();
    kept.push(own);
    let entries = filters::on(interface, BPF_TCX_INGRESS)?;
    let is_orphan = |found: &filters::Found| {
        let is_ours = found.runs_afpa() && !kept.contains(&found.program);
        is_ours
            && (is_dead(found.program) || entries.iter().any(|entry| is_dead_half(found, entry)))
    };
    remove_if(interface, hook, is_orphan)
}

/// Removes the filters on a hook that are wanted.
pub(crate) fn remove_if(
    interface: u32,
    hook: u32,
    wanted: impl Fn(&filters::Found) -> bool,
) -> io::Result<()> {
    for found in filters::on(interface, hook)?.iter().filter(|found| wanted(found)) {
        let program = ProgramImpl::fd_from_id(found.program).map_err(system)?;
        let mut hook = hook_of(&program, interface, hook);
        hook.handle(found.handle).priority(found.priority);
        hook.detach().map_err(system)?;
    }
    Ok(())
}

/// Is it the egress program beside an ingress program whose process has ended? It shares the maps of that one, and has
/// no `alive` itself. So the programs of egress have to be removed before those of ingress.
fn is_dead_half(found: &filters::Found, entry: &filters::Found) -> bool {
    let shares = || -> io::Result<bool> {
        let maps = maps_of(entry.program)?;
        Ok(maps_of(found.program)?.iter().any(|map| maps.contains(map)))
    };
    is_dead(entry.program) && shares().unwrap_or(false)
}

/// Has the process of this program of ours ended? It says so by its map `alive`, which the kernel has emptied. When
/// that cannot be found out, the process is believed to live.
fn is_dead(program: u32) -> bool {
    let Ok(maps) = maps_of(program) else { return false };
    let alive = maps.into_iter().filter_map(|map| MapHandle::from_map_id(map).ok());
    let alive = alive.filter(|map| map.name() == "alive").collect::<Vec<_>>();
    let [alive] = &alive[..] else { return false };
    matches!(alive.lookup(&0u32.to_ne_bytes(), MapFlags::ANY), Ok(None))
}

/// The numbers of the maps that a program uses.
fn maps_of(program: u32) -> io::Result<Vec<u32>> {
    crate::program::maps(&ProgramImpl::fd_from_id(program).map_err(system)?)
}

/// The programs that wait in the folders of this machine for a process that takes them over.
fn pinned_programs() -> Vec<u32> {
    let folders = std::fs::read_dir(HOME).into_iter().flatten().flatten();
    let pins = folders.flat_map(|folder| std::fs::read_dir(folder.path()).into_iter().flatten());
    let programs =
        pins.flatten().filter_map(|pin| ProgramImpl::fd_from_pinned_path(pin.path()).ok());
    programs.filter_map(|program| ProgramImpl::id_from_fd(program.as_fd()).ok()).collect()
}

/// Pins a program where another one may be.
fn pin(program: &OwnedFd, path: &Path) -> io::Result<()> {
    use std::os::unix::ffi::OsStrExt;

    let _stale = std::fs::remove_file(path); // of an interface that is gone, or of the process before
    let path = std::ffi::CString::new(path.as_os_str().as_bytes())?;
    // JUSTIFICATION: libbpf-rs wants the object, which is not kept.
    // SAFETY: plain system call wrapper; `path` ends with a zero byte.
    let result = unsafe { bpf_obj_pin(program.as_raw_fd(), path.as_ptr()) };
    if result < 0 { Err(io::Error::from_raw_os_error(-result)) } else { Ok(()) }
}

/// The network namespace of the calling thread.
fn namespace() -> io::Result<u64> {
    use std::os::unix::fs::MetadataExt;

    Ok(std::fs::metadata("/proc/thread-self/ns/net")?.ino())
}

fn hook_of(program: &OwnedFd, interface: u32, hook: u32) -> TcHook {
    let mut tc = TcHook::new(program.as_fd());
    tc.ifindex(interface as i32).attach_point(point(hook));
    tc
}

fn point(hook: u32) -> TcAttachPoint {
    if hook == BPF_TCX_INGRESS { TC_INGRESS } else { TC_EGRESS }
}

/// The system's error number, which callers look at.
fn system(error: libbpf_rs::Error) -> io::Error {
    use std::error::Error;

    let mut source = error.source();
    while let Some(inner) = source {
        if let Some(inner) = inner.downcast_ref::<io::Error>()
            && let Some(number) = inner.raw_os_error()
        {
            return io::Error::from_raw_os_error(number);
        }
        source = inner.source();
    }
    io::Error::other(error)
}
