//! Programs at tcx hooks that come and go while another process holds them, for measurements of their cost.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use libbpf_rs::ProgramImpl;
use libbpf_rs::libbpf_sys::{
    BPF_F_BEFORE, BPF_PROG_TYPE_SCHED_CLS, BPF_TCX_EGRESS, BPF_TCX_INGRESS, bpf_insn,
    bpf_link_detach, bpf_link_get_fd_by_id, bpf_prog_attach_opts, bpf_prog_detach_opts,
    bpf_prog_load, bpf_prog_load_opts,
};

/// Verdict: the packet is accepted, and no further program is asked.
const TCX_PASS: i32 = 0;

/// One of an interface's two tcx hooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TcxHook {
    /// Packets that arrive.
    Ingress,
    /// Packets that leave.
    Egress,
}

/// A program that can be attached to a tcx hook; loading does not attach it.
#[derive(Debug)]
pub struct TcxProgram {
    program: OwnedFd,
    hook: TcxHook,
}

impl TcxHook {
    fn number(self) -> u32 {
        match self {
            Self::Ingress => BPF_TCX_INGRESS,
            Self::Egress => BPF_TCX_EGRESS,
        }
    }
}

impl TcxProgram {
    /// A program of another process, by its id.
    ///
    /// # Errors
    ///
    /// When there is no such program. Needs `CAP_SYS_ADMIN`.
    pub fn by_id(id: u32, hook: TcxHook) -> io::Result<Self> {
        let program = ProgramImpl::fd_from_id(id).map_err(io::Error::other)?;
        Ok(Self { program, hook })
    }

    /// A program that passes every packet on.
    ///
    /// # Errors
    ///
    /// When the kernel does not load it.
    pub fn passing_on(hook: TcxHook) -> io::Result<Self> {
        Self::returning(crate::TCX_NEXT, hook)
    }

    /// A program that accepts every packet: those behind it are not asked any more.
    ///
    /// # Errors
    ///
    /// When the kernel does not load it.
    pub fn accepting(hook: TcxHook) -> io::Result<Self> {
        Self::returning(TCX_PASS, hook)
    }

    fn returning(verdict: i32, hook: TcxHook) -> io::Result<Self> {
        // r0 = verdict; exit
        let mut set = bpf_insn { code: 0xb7, imm: verdict, ..Default::default() };
        set.set_dst_reg(0);
        let instructions = [set, bpf_insn { code: 0x95, ..Default::default() }];
        let mut options = bpf_prog_load_opts {
            sz: size_of::<bpf_prog_load_opts>() as _,
            expected_attach_type: hook.number(),
            ..Default::default()
        };
        // JUSTIFICATION: libbpf-rs loads whole objects only.
        // SAFETY: plain system call wrapper; the pointers are to memory that outlives the call, the strings end
        // with a zero byte, and the count is that of the instructions.
        let program = unsafe {
            bpf_prog_load(
                BPF_PROG_TYPE_SCHED_CLS,
                c"passing_on".as_ptr(),
                c"GPL".as_ptr(),
                instructions.as_ptr(),
                instructions.len() as _,
                &mut options,
            )
        };
        outcome(program)?;
        // SAFETY: a descriptor that the kernel has just made for us.
        let program = unsafe { OwnedFd::from_raw_fd(program) };
        Ok(Self { program, hook })
    }

    /// Attaches it behind the programs that are there, to an interface of the current network namespace.
    ///
    /// # Errors
    ///
    /// When the kernel refuses.
    pub fn attach(&self, interface: u32) -> io::Result<()> {
        self.attach_where(interface, 0)
    }

    /// Attaches it before the programs that are there.
    ///
    /// # Errors
    ///
    /// When the kernel refuses.
    pub fn attach_first(&self, interface: u32) -> io::Result<()> {
        self.attach_where(interface, BPF_F_BEFORE)
    }

    fn attach_where(&self, interface: u32, flags: u32) -> io::Result<()> {
        let options = libbpf_rs::libbpf_sys::bpf_prog_attach_opts {
            sz: size_of::<libbpf_rs::libbpf_sys::bpf_prog_attach_opts>() as _,
            flags,
            ..Default::default()
        };
        // JUSTIFICATION: libbpf-rs has no tcx yet.
        // SAFETY: plain system call wrapper; `options` outlives it, and has the size that it says.
        outcome(unsafe {
            bpf_prog_attach_opts(
                self.program.as_raw_fd(),
                interface as i32,
                self.hook.number(),
                &options,
            )
        })
    }

    /// Takes it off again.
    ///
    /// # Errors
    ///
    /// When it is not there.
    pub fn detach(&self, interface: u32) -> io::Result<()> {
        // JUSTIFICATION: libbpf-rs has no tcx yet.
        // SAFETY: plain system call wrapper; no options means a null pointer, which it allows.
        outcome(unsafe {
            bpf_prog_detach_opts(
                self.program.as_raw_fd(),
                interface as i32,
                self.hook.number(),
                std::ptr::null(),
            )
        })
    }
}

/// Takes a link of another process off its hook, for good. The process keeps the link, which does nothing any more.
///
/// # Errors
///
/// When there is no such link. Needs `CAP_SYS_ADMIN`.
pub fn detach_link(id: u32) -> io::Result<()> {
    // JUSTIFICATION: libbpf-rs opens links by path only. SAFETY: plain system call wrapper.
    let link = unsafe { bpf_link_get_fd_by_id(id) };
    outcome(link)?;
    // SAFETY: a descriptor that the kernel has just made for us.
    let link = unsafe { OwnedFd::from_raw_fd(link) };
    // JUSTIFICATION: libbpf-rs has no tcx yet. SAFETY: plain system call wrapper.
    outcome(unsafe { bpf_link_detach(link.as_raw_fd()) })
}

fn outcome(result: i32) -> io::Result<()> {
    if result < 0 { Err(io::Error::from_raw_os_error(-result)) } else { Ok(()) }
}
