//! Runs a program on a packet that was made by hand: packet in, verdict and packet out.
//!
//! For tests and fuzzers, and for programs that user mode runs. The packet belongs to the current network
//! namespace's `lo` unless said otherwise; the clones that such a program makes are sent.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use libbpf_rs::libbpf_sys::{bpf_prog_test_run_opts, bpf_test_run_opts};

use crate::net::attach::Interfaces;

/// Verdict: the packet goes on, to the next program on the hook or to the kernel.
pub const TCX_NEXT: i32 = -1;
/// Verdict: it is dropped.
pub const TCX_DROP: i32 = 2;
/// Verdict: it leaves by an interface.
pub const TCX_REDIRECT: i32 = 7;

/// ENODEV.
const NO_DEVICE: i32 = 19;

/// Which program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hook {
    /// Client to server.
    Ingress,
    /// Server to client.
    Egress,
}

/// The result of a program's run on a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DryRun {
    /// One of the `TCX_` verdicts.
    pub verdict: i32,
    /// The packet as it would go on or leave.
    pub packet: Vec<u8>,
    /// Mean time of a run.
    pub time: Duration,
}

impl Interfaces {
    /// Runs a program `repeat` times on an Ethernet frame. Each run gets the packet that the run before left.
    pub fn dry_run(&self, hook: Hook, frame: &[u8], repeat: u32) -> io::Result<DryRun> {
        run(if hook == Hook::Ingress { &self.ingress } else { &self.egress }, frame, repeat)
    }

    /// [`dry_run`](Self::dry_run) once, as at an interface of the current network namespace. A packet that leaves comes from
    /// a socket here.
    pub fn dry_run_at(&self, hook: Hook, frame: &[u8], place: Place) -> io::Result<DryRun> {
        let program = if hook == Hook::Ingress { &self.ingress } else { &self.egress };
        let mut context = [0; CONTEXT];
        context[INGRESS_IFINDEX] = if hook == Hook::Ingress { place.interface } else { 0 };
        context[IFINDEX] = place.interface;
        context[GSO_SIZE] = place.gso_size;
        run_on(program, frame, 1, &context)
    }
}

/// The place of a packet, and its properties that are not in its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Index of the interface.
    pub interface: u32,
    /// Bytes of payload in each of the segments that were merged into this one; 0: it is one.
    pub gso_size: u32,
}

/// Words of `struct __sk_buff`, which the kernel's header numbers for good.
const INGRESS_IFINDEX: usize = 9;
const IFINDEX: usize = 10;
const GSO_SIZE: usize = 44;
const CONTEXT: usize = 46;

pub(crate) fn run(program: &OwnedFd, frame: &[u8], repeat: u32) -> io::Result<DryRun> {
    run_on(program, frame, repeat, &[])
}

/// As if the packet had come in by `interface`, of the current network namespace: the programs take a clone for an
/// answer of ours, and it does leave. None: the interface is gone, and with it the packet's connection.
pub(crate) fn run_from(
    program: &OwnedFd,
    frame: &[u8],
    interface: u32,
) -> io::Result<Option<DryRun>> {
    let mut context = [0; IFINDEX + 1];
    context[INGRESS_IFINDEX..].fill(interface);
    match run_on(program, frame, 1, &context) {
        Err(error) if error.raw_os_error() == Some(NO_DEVICE) => Ok(None),
        other => other.map(Some),
    }
}

/// As if the packet had been merged of datagrams with so many bytes each.
pub(crate) fn run_gso(program: &OwnedFd, frame: &[u8], size: u32) -> io::Result<DryRun> {
    let mut context = [0; CONTEXT];
    context[GSO_SIZE] = size;
    run_on(program, frame, 1, &context)
}

fn run_on(program: &OwnedFd, frame: &[u8], repeat: u32, context: &[u32]) -> io::Result<DryRun> {
    let mut packet = vec![0; 4096];
    let mut options = bpf_test_run_opts {
        sz: size_of::<bpf_test_run_opts>() as _,
        ctx_in: if context.is_empty() { std::ptr::null() } else { context.as_ptr().cast() },
        ctx_size_in: size_of_val(context) as u32,
        data_in: frame.as_ptr().cast(),
        data_size_in: frame.len() as u32,
        data_out: packet.as_mut_ptr().cast(),
        data_size_out: packet.len() as u32,
        repeat: repeat as i32,
        ..bpf_test_run_opts::default()
    };
    // JUSTIFICATION: libbpf-rs test runs need the object, which is not kept.
    // SAFETY: all buffers outlive the call and have the sizes given; the kernel writes no further.
    let result = unsafe { bpf_prog_test_run_opts(program.as_raw_fd(), &mut options) };
    if result < 0 {
        return Err(io::Error::from_raw_os_error(-result));
    }
    packet.truncate(options.data_size_out as usize);
    let time = Duration::from_nanos(options.duration.into());
    Ok(DryRun { verdict: options.retval as i32, packet, time })
}
