//! The engine as a process: no privilege, very many steps.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use afpa_send::Micros;

use super::script::Engine;
use super::step::{STATE, Step, state};

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/engine/user_space.c");
const INCLUDE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../bpf/include");

/// `user_space.c`, compiled and running.
pub(crate) struct Process {
    child: Child,
    input: Option<ChildStdin>,
    output: ChildStdout,
}

impl Process {
    /// Compiles it into `folder`. None, said aloud, where there is no C compiler.
    pub(crate) fn start(folder: &Path) -> Option<Self> {
        let runs = |name: &&str| Command::new(name).arg("--version").output().is_ok();
        let Some(compiler) = ["clang", "gcc", "cc"].into_iter().find(runs) else {
            println!("SKIP: neither clang nor gcc is there to compile the send engine");
            return None;
        };
        let program = folder.join("engine");
        let status = Command::new(compiler)
            .args(["-O2", "-Wall", "-Werror", "-fno-strict-aliasing", "-I", INCLUDE, SOURCE, "-o"])
            .arg(&program)
            .status();
        assert!(status.is_ok_and(|status| status.success()), "{compiler} compiles {SOURCE}");
        let mut child = Command::new(program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the compiled engine starts");
        let input = child.stdin.take();
        let output = child.stdout.take().expect("a pipe");
        Some(Self { child, input, output })
    }
}

impl Engine for Process {
    fn step(&mut self, now: Micros, step: &Step) -> Vec<u64> {
        let input = self.input.as_mut().expect("open until dropped");
        input.write_all(&step.bytes(now)).expect("the engine reads");
        let mut bytes = [0; STATE * 8];
        self.output.read_exact(&mut bytes).expect("the engine answers");
        state(&bytes)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ended = self.child.wait();
    }
}
