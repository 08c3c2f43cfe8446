//! The worker process: the C of `bpf/include/afpa/tcp` behind two pipes.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::step::{Micros, SenderState, Step};

/// The worker over the sources as they are, compiled by the build script.
const COMPILED: &str = env!("AFPA_TCP_WORKER");

/// Senders of one worker, and steps of one batch.
pub const SENDERS: usize = 512;

/// A running worker. It ends when its input does.
pub struct Worker {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    errors: File,
    batch: Vec<u8>,
    steps: usize,
    budget: u64,
}

impl Default for Worker {
    fn default() -> Self {
        Self::start(Path::new(COMPILED))
    }
}

impl Worker {
    /// Starts the program; see [`compile`](crate::compile).
    pub fn start(program: &Path) -> Self {
        let errors = unlinked_file();
        let mut child = Command::new(program)
            // Nothing is allocated, and looking for leaks fails where processes may not be traced.
            .env("ASAN_OPTIONS", "detect_leaks=0")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(errors.try_clone().expect("another descriptor"))
            .spawn()
            .expect("the worker starts");
        let input = child.stdin.take();
        let output = BufReader::with_capacity(1 << 16, child.stdout.take().expect("a pipe"));
        Self { child, input, output, errors, batch: vec![0; 4], steps: 0, budget: u64::MAX }
    }

    /// The same worker, which panics after so many steps: a sender with a fault may never end.
    pub fn with_budget(mut self, steps: u64) -> Self {
        self.budget = steps;
        self
    }

    /// Adds a step to the batch.
    pub fn push(&mut self, sender: usize, now: Micros, step: &Step) {
        self.batch.extend_from_slice(&step.bytes(sender as u32, now));
        self.steps += 1;
    }

    /// Runs the batch: one state for each step, in their order. Panics with the sanitizers' report when the
    /// worker ends.
    pub fn run(&mut self, states: &mut Vec<SenderState>) {
        self.budget = self.budget.checked_sub(self.steps as u64).expect("within the budget");
        self.batch[..4].copy_from_slice(&(self.steps as u32).to_ne_bytes());
        let sent = self.input.as_mut().expect("open until dropped").write_all(&self.batch);
        let mut bytes = vec![0; self.steps * SenderState::BYTES];
        let answered = sent.and_then(|()| self.output.read_exact(&mut bytes));
        if let Err(error) = answered {
            panic!("the worker has ended: {error}\n{}", self.report());
        }
        states.clear();
        states.extend(bytes.chunks_exact(SenderState::BYTES).map(SenderState::parse));
        self.batch.truncate(4);
        self.steps = 0;
    }

    /// One step alone.
    pub fn step(&mut self, sender: usize, now: Micros, step: &Step) -> SenderState {
        self.push(sender, now, step);
        let mut states = Vec::with_capacity(1);
        self.run(&mut states);
        states[0]
    }

    /// The report of the sanitizers.
    fn report(&mut self) -> String {
        let mut text = String::new();
        let _ended = self.child.wait();
        let _read = self
            .errors
            .seek(SeekFrom::Start(0))
            .and_then(|_| self.errors.read_to_string(&mut text));
        text
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ended = self.child.wait();
    }
}

/// A file without a name: unlike a pipe it takes any report, whether or not it is read.
fn unlinked_file() -> File {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let name = format!("afpa-tcp-sim-{}-{number}", std::process::id());
    let path = std::env::temp_dir().join(name);
    let mut options = File::options();
    let file = options.read(true).write(true).create_new(true).open(&path).expect("a file");
    std::fs::remove_file(path).expect("the file was there");
    file
}
