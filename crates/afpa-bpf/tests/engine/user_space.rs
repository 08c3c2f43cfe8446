//! The engine as a process: very many steps.

use std::path::Path;

use afpa_send::Micros;

use super::script::Engine;
use super::step::{STATE, Step, state};
use crate::compiled::Compiled;

/// `user_space.c`, compiled and running.
pub(crate) struct Process(Compiled);

impl Process {
    /// Compiles it into `folder`. None, said aloud, where there is no C compiler.
    pub(crate) fn start(folder: &Path) -> Option<Self> {
        Compiled::start("crates/afpa-bpf/tests/engine/user_space.c", folder).map(Self)
    }
}

impl Engine for Process {
    fn step(&mut self, now: Micros, step: &Step) -> Vec<u64> {
        self.0.write(&step.bytes(now));
        let mut bytes = [0; STATE * 8];
        self.0.read(&mut bytes);
        state(&bytes)
    }
}
