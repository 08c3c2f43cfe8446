//! The sender as the kernel runs it: compiled for BPF, verified, and run by BPF_PROG_TEST_RUN.

use std::path::Path;
use std::process::Command;

use afpa_tcp_sim::step::{Micros, SenderState, Step};
use libbpf_rs::{Object, ObjectBuilder, ProgramInput};

#[path = "../../build/compile.rs"]
mod compile;

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/sender/sender.bpf.c");
const INCLUDE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../bpf/include");
const STEPS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../afpa-tcp-sim/c");
const ETHERNET: usize = 14;

/// `sender.bpf.c`, loaded.
pub(crate) struct Kernel(Object);

impl Kernel {
    /// Compiles it into `folder` and loads it. None, said aloud, where either cannot be.
    pub(crate) fn load(folder: &Path) -> Option<Self> {
        let clang = Command::new("clang").arg("--version").output();
        if !clang.is_ok_and(|out| out.status.success()) {
            println!("SKIP: no clang to compile {SOURCE} for BPF");
            return None;
        }
        let path = folder.join("sender.bpf.o");
        let includes = [format!("-I{INCLUDE}"), format!("-I{STEPS}")];
        compile::compile(SOURCE, &path, folder, &[&includes[0], &includes[1]]);
        let open = ObjectBuilder::default().open_file(&path).expect("an object");
        match open.load() {
            Ok(object) => Some(Self(object)),
            // The verifier's refusal has the same kind, and is no reason to skip anything.
            Err(error)
                if error.kind() == libbpf_rs::ErrorKind::PermissionDenied
                    && !rustix::process::geteuid().is_root() =>
            {
                println!("SKIP: programs cannot be loaded here: {error:#}");
                None
            }
            Err(error) => panic!("sender.bpf.c is loaded: {error:#}"),
        }
    }

    /// Instructions that the verifier looked at.
    pub(crate) fn verified(&self) -> u32 {
        let all = libbpf_rs::query::ProgInfoIter::default();
        all.filter(|info| info.name == "sender_step")
            .map(|info| info.verified_insns)
            .max()
            .unwrap_or(0)
    }

    pub(crate) fn step(&mut self, now: Micros, step: &Step) -> SenderState {
        let mut packet = vec![0; ETHERNET + SenderState::BYTES];
        packet[ETHERNET - 2] = 0x08;
        let bytes = step.bytes(0, now);
        packet[ETHERNET..ETHERNET + bytes.len()].copy_from_slice(&bytes);
        let mut out = vec![0; packet.len()];
        let input = ProgramInput {
            data_in: Some(&packet),
            data_out: Some(&mut out),
            ..ProgramInput::default()
        };
        let program = self.0.progs_mut().next().expect("one program");
        let ran = program.test_run(input).expect("a test run");
        assert_eq!(ran.return_value, 0);
        SenderState::parse(&out[ETHERNET..])
    }
}
