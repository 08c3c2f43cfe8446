//! The programs' parser in a child process: hundreds of thousands of heads a second.

use std::path::Path;

use super::framing::Framing;
use super::property::Verdict;
use super::world::{Table, World};
use crate::compiled::Compiled;

/// Answers of one batch fit the pipe, so that the child never waits for us while we wait for it.
const BATCH: usize = 4096;

/// `user_space.c`, compiled and running.
pub struct Parser(Compiled);

impl Parser {
    /// Compiles it into `folder`. None, said aloud, where there is no C compiler.
    pub fn start(folder: &Path, world: &World) -> Option<Self> {
        let mut parser = Self(Compiled::start("crates/afpa-bpf/tests/agree/user_space.c", folder)?);
        parser.fill(world);
        Some(parser)
    }

    fn fill(&mut self, world: &World) {
        for entry in world.entries() {
            self.0.write(&[b'U', entry.table as u8]);
            self.0.write(&(entry.value.len() as u32).to_ne_bytes());
            self.0.write(&entry.key);
            self.0.write(&entry.value);
        }
    }

    /// The parser's verdict on each head.
    pub fn judge<B: AsRef<[u8]>>(&mut self, heads: &[B]) -> Vec<Verdict> {
        heads.chunks(BATCH).flat_map(|batch| self.judge_batch(batch)).collect()
    }

    fn judge_batch<B: AsRef<[u8]>>(&mut self, heads: &[B]) -> Vec<Verdict> {
        self.ask(b"B", heads, 1).into_iter().map(Verdict::new).collect()
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
        self.0.write(command);
        self.0.write(&(batch.len() as u32).to_ne_bytes());
        for bytes in batch {
            self.0.write(&(bytes.as_ref().len() as u32).to_ne_bytes());
            self.0.write(bytes.as_ref());
        }
        let mut answer = vec![0; batch.len() * words * 4];
        self.0.read(&mut answer);
        let (fours, _) = answer.as_chunks::<4>();
        fours.iter().copied().map(u32::from_ne_bytes).collect()
    }
}

// `Table` numbers are the child's; a new one must be added there.
const _: () = assert!(Table::Sites as u8 == 0 && Table::Fields as u8 == 4);
