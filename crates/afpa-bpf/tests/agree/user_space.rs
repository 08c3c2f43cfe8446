//! The programs' parser in a child process: no map, no privilege, hundreds of thousands of heads a second.

use std::io::{BufWriter, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use super::framing::Framing;
use super::property::Verdict;
use super::world::{Table, World};

/// Answers of one batch fit the pipe, so that the child never waits for us while we wait for it.
const BATCH: usize = 4096;

/// `user_space.c`, compiled and running. It ends when its input does.
pub struct Parser {
    child: Child,
    input: Option<BufWriter<ChildStdin>>,
    output: ChildStdout,
}

impl Parser {
    /// Compiles it into `folder`. None, said aloud, where there is no C compiler.
    pub fn start(folder: &Path, world: &World) -> Option<Self> {
        let program = folder.join("user_space");
        let Some(compiler) = ["clang", "gcc", "cc"].into_iter().find(|name| runs(name)) else {
            println!("SKIP: neither clang nor gcc is there to compile the programs' parser");
            return None;
        };
        let status = Command::new(compiler)
            .current_dir(root())
            .args(["-O2", "-Wall", "-Werror", "-fno-strict-aliasing", "-I", INCLUDE, SOURCE, "-o"])
            .arg(&program)
            .status();
        assert!(status.is_ok_and(|status| status.success()), "{compiler} compiles {SOURCE}");
        let mut child = Command::new(program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the compiled parser starts");
        let input = child.stdin.take().map(BufWriter::new);
        let output = child.stdout.take().expect("a pipe");
        let mut parser = Self { child, input, output };
        parser.fill(world);
        Some(parser)
    }

    fn fill(&mut self, world: &World) {
        for entry in world.entries() {
            self.write(&[b'U', entry.table as u8]);
            self.write(&(entry.value.len() as u32).to_ne_bytes());
            self.write(&entry.key);
            self.write(&entry.value);
        }
    }

    /// What the parser says about each head.
    pub fn judge<B: AsRef<[u8]>>(&mut self, heads: &[B]) -> Vec<Verdict> {
        heads.chunks(BATCH).flat_map(|batch| self.judge_batch(batch)).collect()
    }

    fn judge_batch<B: AsRef<[u8]>>(&mut self, heads: &[B]) -> Vec<Verdict> {
        self.ask(b"B", heads, 1).into_iter().map(Verdict::new).collect()
    }

    /// What the parser reads in each segment of requests that go up together.
    pub fn frame<B: AsRef<[u8]>>(&mut self, segments: &[B]) -> Vec<Framing> {
        let mut framings = Vec::with_capacity(segments.len());
        for batch in segments.chunks(BATCH / 4) {
            let words = self.ask(b"F", batch, 4);
            let (four, _) = words.as_chunks::<4>();
            framings.extend(four.iter().copied().map(Framing::new));
        }
        framings
    }

    /// The words that a batch is answered with.
    fn ask<B: AsRef<[u8]>>(&mut self, command: &[u8], batch: &[B], words: usize) -> Vec<u32> {
        self.write(command);
        self.write(&(batch.len() as u32).to_ne_bytes());
        for bytes in batch {
            self.write(&(bytes.as_ref().len() as u32).to_ne_bytes());
            self.write(bytes.as_ref());
        }
        self.input.as_mut().expect("open until dropped").flush().expect("the parser reads");
        let mut answer = vec![0; batch.len() * words * 4];
        self.output.read_exact(&mut answer).expect("the parser answers");
        let (fours, _) = answer.as_chunks::<4>();
        fours.iter().copied().map(u32::from_ne_bytes).collect()
    }

    fn write(&mut self, bytes: &[u8]) {
        let input = self.input.as_mut().expect("open until dropped");
        input.write_all(bytes).expect("the parser reads");
    }
}

impl Drop for Parser {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.child.wait();
    }
}

fn runs(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|out| out.status.success())
}

/// The folder of the repository: this file is part of crates in different places.
fn root() -> &'static Path {
    let mut folders = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    folders.find(|folder| folder.join(INCLUDE).is_dir()).expect("the source tree")
}

const SOURCE: &str = "crates/afpa-bpf/tests/agree/user_space.c";
const INCLUDE: &str = "bpf/include";

// `Table` numbers are the child's; a new one must be added there.
const _: () = assert!(Table::Sites as u8 == 0 && Table::Shared as u8 == 3);
