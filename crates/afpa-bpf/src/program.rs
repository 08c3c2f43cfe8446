//! The kernel's information about a loaded program.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use libbpf_rs::libbpf_sys::{bpf_obj_get_info_by_fd, bpf_prog_info};

/// The verifier's and the kernel's figures about a loaded program.
#[derive(Clone, Debug)]
pub struct ProgramStatistics {
    /// The program's name.
    pub name: &'static str,
    /// Instructions the verifier processed; its limit is one million.
    pub verified_instructions: u32,
    /// Bytes of machine code.
    pub jited_bytes: u32,
    /// Runs and time in them, while `kernel.bpf_stats_enabled` is set.
    pub runs: u64,
    /// See `runs`.
    pub time: Duration,
}

/// Verifier and run-time figures of a program.
pub(crate) fn statistics(name: &'static str, fd: &OwnedFd) -> io::Result<ProgramStatistics> {
    let info = information(fd)?;
    Ok(ProgramStatistics {
        name,
        verified_instructions: info.verified_insns,
        jited_bytes: info.jited_prog_len,
        runs: info.run_cnt,
        time: Duration::from_nanos(info.run_time_ns),
    })
}

/// The kernel's number of a program.
pub(crate) fn id(program: &OwnedFd) -> io::Result<u32> {
    information(program).map(|info| info.id)
}

/// The name of a program, as far as the kernel keeps it: 15 bytes.
pub(crate) fn name(program: &OwnedFd) -> io::Result<String> {
    let info = information(program)?;
    let name = info.name.iter().take_while(|c| **c != 0).map(|c| *c as u8).collect();
    Ok(String::from_utf8(name).unwrap_or_default())
}

/// The numbers of the maps that a program uses.
pub(crate) fn maps(program: &OwnedFd) -> io::Result<Vec<u32>> {
    let count = information(program)?.nr_map_ids;
    let mut maps = vec![0u32; count as usize];
    let map_ids = maps.as_mut_ptr() as u64;
    ask(program, bpf_prog_info { nr_map_ids: count, map_ids, ..Default::default() })?;
    Ok(maps)
}

fn information(program: &OwnedFd) -> io::Result<bpf_prog_info> {
    ask(program, bpf_prog_info::default())
}

/// `wanted` has the places where the kernel is to put lists.
fn ask(program: &OwnedFd, mut wanted: bpf_prog_info) -> io::Result<bpf_prog_info> {
    let mut length = size_of::<bpf_prog_info>() as u32;
    let into = (&raw mut wanted).cast();
    // JUSTIFICATION: libbpf-rs offers no way to ask about a program it does not own.
    // SAFETY: `into` points to `length` writable bytes; the lists that it names are as long as it says.
    let result = unsafe { bpf_obj_get_info_by_fd(program.as_raw_fd(), into, &mut length) };
    if result != 0 { Err(io::Error::last_os_error()) } else { Ok(wanted) }
}
