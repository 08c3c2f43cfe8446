//! The programs' parser in a child process: hundreds of thousands of heads a second.

use std::path::Path;

use super::framing::Framing;
use super::property::Verdict;
use super::world::{Table, World};
use crate::compiled::Compiled;

/// Answers of one batch fit the pipe, so that the child never waits for us while we wait for it.
const BATCH: usize = 4096;

/// `user_space.c`, compiled and running.
pub struct Parser {
    child: Compiled,
    may_close: bool,
}

impl Parser {
    /// Compiles it into `folder`. None, said aloud, where there is no C compiler.
    pub fn start(folder: &Path, world: &World) -> Option<Self> {
        let child = Compiled::start("crates/afpa-bpf/tests/agree/user_space.c", folder)?;
        let mut parser = Self { child, may_close: false };
        parser.fill(world);
        Some(parser)
    }

    fn fill(&mut self, world: &World) {
        for entry in world.entries() {
            self.child.write(&[b'U', entry.table as u8]);
            self.child.write(&(entry.value.len() as u32).to_ne_bytes());
            self.child.write(&entry.key);
            self.child.write(&entry.value);
        }
    }

    /// From now on heads are judged as those of connections that the programs may close, or may not.
    pub fn let_close(&mut self, may_close: bool) {
        self.child.write(&[b'C', u8::from(may_close)]);
        self.may_close = may_close;
    }

    /// The parser's verdict on each head.
    pub fn judge<B: AsRef<[u8]>>(&mut self, heads: &[B]) -> Vec<Verdict> {
        heads.chunks(BATCH).flat_map(|batch| self.judge_batch(batch)).collect()
    }

    fn judge_batch<B: AsRef<[u8]>>(&mut self, heads: &[B]) -> Vec<Verdict> {
        let may_close = self.may_close;
        let verdict = |word| Verdict::new(word).of_connection(may_close);
        self.ask(b"B", heads, 1).into_iter().map(verdict).collect()
    }

    /// The framing that the parser reads in each segment of requests that go up together.
    pub fn frame<B: AsRef<[u8]>>(&mut self, segments: &[B]) -> Vec<Framing> {
        let mut framings = Vec::with_capacity(segments.len());
        for batch in segments.chunks(BATCH / 4) {
            let words = self.ask(b"F", batch, 4);
            let (four, _) = words.as_chunks::<4>();
            framings.extend(four.iter().copied().map(Framing::new));
        }
        framings
    }

    /// One more than the place where the unsafe request at the start of each is noted; 0: it is none.
    pub fn unsafe_targets<B: AsRef<[u8]>>(&mut self, heads: &[B]) -> Vec<u32> {
        heads.chunks(BATCH).flat_map(|batch| self.ask(b"N", batch, 1)).collect()
    }

    /// The words that a batch is answered with.
    fn ask<B: AsRef<[u8]>>(&mut self, command: &[u8], batch: &[B], words: usize) -> Vec<u32> {
        self.child.write(command);
        self.child.write(&(batch.len() as u32).to_ne_bytes());
        for bytes in batch {
            self.child.write(&(bytes.as_ref().len() as u32).to_ne_bytes());
            self.child.write(bytes.as_ref());
        }
        let mut answer = vec![0; batch.len() * words * 4];
        self.child.read(&mut answer);
        let (fours, _) = answer.as_chunks::<4>();
        fours.iter().copied().map(u32::from_ne_bytes).collect()
    }
}

// `Table` numbers are the child's; a new one must be added there.
const _: () = assert!(Table::Sites as u8 == 0 && Table::Fields as u8 == 4);
