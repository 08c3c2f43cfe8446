//! The engine where it belongs: compiled for BPF, verified, and run by BPF_PROG_TEST_RUN.

use std::path::Path;
use std::process::Command;

use afpa_send::Micros;
use libbpf_cargo::SkeletonBuilder;
use libbpf_rs::{Object, ObjectBuilder, ProgramInput};

use super::script::Engine;
use super::step::{STATE, Step, state};

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/engine/step.bpf.c");
const INCLUDE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../bpf/include");
const ETHERNET: usize = 14;

/// `step.bpf.c`, loaded.
pub(crate) struct Kernel(Object);

impl Kernel {
    /// Compiles it into `folder` and loads it. None, said aloud, where either cannot be.
    pub(crate) fn load(folder: &Path) -> Option<Self> {
        let clang = Command::new("clang").arg("--version").output();
        if !clang.is_ok_and(|out| out.status.success()) {
            println!("SKIP: no clang to compile {SOURCE} for BPF");
            return None;
        }
        let path = folder.join("step.bpf.o");
        SkeletonBuilder::new()
            .source(SOURCE)
            .obj(&path)
            .clang_args([&format!("-I{INCLUDE}"), "-mcpu=v3", "-Wall", "-Werror"])
            .build()
            .expect("step.bpf.c compiles");
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
            Err(error) => panic!("step.bpf.c is loaded: {error:#}"),
        }
    }

    /// Instructions that the verifier looked at.
    pub(crate) fn verified(&self) -> u32 {
        let all = libbpf_rs::query::ProgInfoIter::default();
        all.filter(|info| info.name == "engine_step")
            .map(|info| info.verified_insns)
            .max()
            .unwrap_or(0)
    }
}

impl Engine for Kernel {
    fn step(&mut self, now: Micros, step: &Step) -> Vec<u64> {
        let mut packet = vec![0; ETHERNET + STATE * 8];
        packet[ETHERNET - 2] = 0x08;
        let bytes = step.bytes(now);
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
        state(&out[ETHERNET..])
    }
}
