//! The system calls that threads may make: two lists of allowed calls, and one of calls that no thread may make.
//!
//! A call that is on no list of its thread is refused with EPERM. That fails one operation, and the rest goes on: a
//! new call of a new C library must not end a server.

use libc::c_long;
use rustix::io::Errno;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as Len, SeccompCmpOp as Op, SeccompCondition,
    SeccompFilter, SeccompRule,
};
use std::collections::BTreeMap;

/// The treatment of a call that a thread may not make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// It fails.
    Fails,
    /// It is made, and the kernel's log has a line of it.
    IsLogged,
}

impl Refusal {
    fn action(self, errno: Errno) -> SeccompAction {
        match self {
            Refusal::Fails => SeccompAction::Errno(errno.raw_os_error().unsigned_abs()),
            Refusal::IsLogged => SeccompAction::Log,
        }
    }
}

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// The filter for the whole process: calls that reach into other processes, or administer the host, are refused. All
/// other calls are allowed.
pub(super) fn of_process(refusal: Refusal) -> seccompiler::Result<BpfProgram> {
    let rules = NOBODY.iter().map(|&call| (call, Vec::new())).collect();
    program(rules, SeccompAction::Allow, refusal.action(Errno::PERM))
}

/// The filter of a process that runs no program, makes no ring, and has loaded all of its BPF programs.
pub(super) fn of_process_alone(refusal: Refusal) -> seccompiler::Result<BpfProgram> {
    let calls = NOBODY.iter().chain(PROGRAMS_AND_RINGS);
    let mut rules: Rules = calls.map(|&call| (call, Vec::new())).collect();
    rules.insert(libc::SYS_bpf, one_of(0, LOADS)?);
    program(rules, SeccompAction::Allow, refusal.action(Errno::PERM))
}

/// Threads must be made by `clone`, whose flags a filter can read. The flags of `clone3` lie in memory, so it fails
/// with ENOSYS; C libraries then use `clone`.
pub(super) fn without_clone3(refusal: Refusal) -> seccompiler::Result<BpfProgram> {
    let rules = Rules::from([(libc::SYS_clone3, Vec::new())]);
    program(rules, SeccompAction::Allow, refusal.action(Errno::NOSYS))
}

/// For those that serve connections: sockets, and descriptors that are there. `may_look`: whether they may ask the
/// kernel's cache of names, which takes a call that opens files as well.
pub(super) fn of_workers(refusal: Refusal, may_look: bool) -> seccompiler::Result<BpfProgram> {
    let look = may_look.then_some(libc::SYS_openat2);
    let mut rules = allowed([ANY_THREAD, SOCKETS].concat().into_iter().chain(look));
    // A ring was made and enabled at the start, and can do only the operations that were registered then.
    rules.insert(libc::SYS_io_uring_enter, Vec::new());
    rules.insert(libc::SYS_bpf, one_of(0, MAPS)?);
    program(rules, refusal.action(Errno::PERM), SeccompAction::Allow)
}

/// For those that load files: no sockets, and further threads of the same kind.
pub(super) fn of_helpers(refusal: Refusal) -> seccompiler::Result<BpfProgram> {
    let mut rules = allowed([ANY_THREAD, FILES].concat());
    let thread = SeccompCondition::new(0, Len::Qword, Op::MaskedEq(THREAD), THREAD)?;
    rules.insert(libc::SYS_clone, vec![SeccompRule::new(vec![thread])?]);
    // Allowed here, and refused as if there were no such call by the other filter.
    rules.insert(libc::SYS_clone3, Vec::new());
    rules.insert(libc::SYS_prctl, one_of(0, &[libc::PR_SET_NAME.unsigned_abs().into()])?);
    rules.insert(libc::SYS_bpf, one_of(0, MAPS)?);
    // A signal may come to any thread. Its handler informs the first thread by a connected socket, so `sendto` has no
    // address.
    let connected = SeccompCondition::new(4, Len::Qword, Op::Eq, 0)?;
    rules.insert(libc::SYS_sendto, vec![SeccompRule::new(vec![connected])?]);
    program(rules, refusal.action(Errno::PERM), SeccompAction::Allow)
}

fn program(
    rules: Rules,
    others: SeccompAction,
    listed: SeccompAction,
) -> seccompiler::Result<BpfProgram> {
    let arch = std::env::consts::ARCH.try_into()?;
    Ok(SeccompFilter::new(rules, others, listed, arch)?.try_into()?)
}

fn allowed(calls: impl IntoIterator<Item = c_long>) -> Rules {
    let own = u64::from(std::process::id());
    let mut rules: Rules = calls.into_iter().map(|call| (call, Vec::new())).collect();
    // `abort` sends a signal to its own thread.
    let own = SeccompCondition::new(0, Len::Dword, Op::Eq, own);
    let abort = SeccompCondition::new(2, Len::Dword, Op::Eq, libc::SIGABRT.unsigned_abs().into());
    if let (Ok(own), Ok(abort)) = (own, abort)
        && let Ok(rule) = SeccompRule::new(vec![own, abort])
    {
        rules.insert(libc::SYS_tgkill, vec![rule]);
    }
    rules
}

/// The call with one of these values as its argument of that number.
fn one_of(argument: u8, values: &[u64]) -> seccompiler::Result<Vec<SeccompRule>> {
    let rule = |&value| {
        let condition = SeccompCondition::new(argument, Len::Dword, Op::Eq, value)?;
        Ok(SeccompRule::new(vec![condition])?)
    };
    values.iter().map(rule).collect()
}

/// Flags of a thread of this process.
const THREAD: u64 = (libc::CLONE_VM | libc::CLONE_THREAD | libc::CLONE_SIGHAND) as u64;

/// Commands of `bpf(2)` on maps that are open already: look up, update, delete, next key, look up and delete, and the
/// same of many; information about an open object. None loads a program or makes a map.
const MAPS: &[u64] = &[1, 2, 3, 4, 15, 21, 22, 24, 25, 26, 27];

/// Commands of `bpf(2)` that make a map, load a program, attach one to a trace point, and load types.
const LOADS: &[u64] = &[0, 5, 17, 18];

const PROGRAMS_AND_RINGS: &[c_long] = &[
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_io_uring_setup,
];

/// Memory, time, waiting, and operations on open descriptors.
const ANY_THREAD: &[c_long] = &[
    libc::SYS_brk,
    libc::SYS_clock_getres,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_close,
    libc::SYS_close_range,
    libc::SYS_dup,
    libc::SYS_dup3,
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_eventfd2,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_fadvise64,
    libc::SYS_fcntl,
    libc::SYS_fstat,
    libc::SYS_fstatfs,
    libc::SYS_futex,
    libc::SYS_getegid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getpid,
    libc::SYS_getppid,
    libc::SYS_getrandom,
    libc::SYS_gettid,
    libc::SYS_getuid,
    libc::SYS_lseek,
    libc::SYS_madvise,
    libc::SYS_membarrier,
    libc::SYS_mlock,
    libc::SYS_mlock2,
    libc::SYS_mmap,
    libc::SYS_mprotect,
    libc::SYS_mremap,
    libc::SYS_munlock,
    libc::SYS_munmap,
    libc::SYS_nanosleep,
    libc::SYS_newfstatat,
    libc::SYS_pipe2,
    libc::SYS_ppoll,
    libc::SYS_pread64,
    libc::SYS_preadv,
    libc::SYS_preadv2,
    libc::SYS_read,
    libc::SYS_readahead,
    libc::SYS_readv,
    libc::SYS_restart_syscall,
    libc::SYS_rseq,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_yield,
    libc::SYS_sendfile,
    libc::SYS_set_robust_list,
    libc::SYS_sigaltstack,
    libc::SYS_splice,
    libc::SYS_statx,
    libc::SYS_tee,
    libc::SYS_timerfd_create,
    libc::SYS_timerfd_settime,
    libc::SYS_uname,
    libc::SYS_write,
    libc::SYS_writev,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_epoll_wait,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_getcpu,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_poll,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_time,
];

const SOCKETS: &[c_long] = &[
    libc::SYS_accept4,
    libc::SYS_bind,
    libc::SYS_connect,
    libc::SYS_getpeername,
    libc::SYS_getsockname,
    libc::SYS_getsockopt,
    libc::SYS_ioctl,
    libc::SYS_recvfrom,
    libc::SYS_recvmmsg,
    libc::SYS_recvmsg,
    libc::SYS_sendmmsg,
    libc::SYS_sendmsg,
    libc::SYS_sendto,
    libc::SYS_setsockopt,
    libc::SYS_shutdown,
    libc::SYS_socket,
];

/// Files below the roots, by descriptors of theirs.
const FILES: &[c_long] = &[
    libc::SYS_faccessat2,
    libc::SYS_flock,
    libc::SYS_ftruncate,
    libc::SYS_getdents64,
    libc::SYS_inotify_add_watch,
    libc::SYS_inotify_rm_watch,
    libc::SYS_memfd_create,
    libc::SYS_openat,
    libc::SYS_openat2,
    libc::SYS_readlinkat,
    libc::SYS_statfs,
];

/// Other processes, the host, and calls of the kernel that are known for their faults.
const NOBODY: &[c_long] = &[
    libc::SYS_acct,
    libc::SYS_add_key,
    libc::SYS_adjtimex,
    libc::SYS_chroot,
    libc::SYS_clock_adjtime,
    libc::SYS_clock_settime,
    libc::SYS_delete_module,
    libc::SYS_finit_module,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fsopen,
    libc::SYS_init_module,
    libc::SYS_kcmp,
    libc::SYS_kexec_load,
    libc::SYS_keyctl,
    libc::SYS_lookup_dcookie,
    libc::SYS_mbind,
    libc::SYS_migrate_pages,
    libc::SYS_mount,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_move_pages,
    libc::SYS_open_by_handle_at,
    libc::SYS_open_tree,
    libc::SYS_perf_event_open,
    libc::SYS_personality,
    libc::SYS_pidfd_getfd,
    libc::SYS_pivot_root,
    libc::SYS_process_madvise,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_ptrace,
    libc::SYS_quotactl,
    libc::SYS_reboot,
    libc::SYS_request_key,
    libc::SYS_setdomainname,
    libc::SYS_sethostname,
    libc::SYS_setns,
    libc::SYS_settimeofday,
    libc::SYS_swapoff,
    libc::SYS_swapon,
    libc::SYS_syslog,
    libc::SYS_umount2,
    libc::SYS_unshare,
    libc::SYS_userfaultfd,
    libc::SYS_vhangup,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_kexec_file_load,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_modify_ldt,
];
