//! The content of the files: windows into one pool of bytes, so that every byte of every response can
//! be compared without keeping the files in memory.

use std::io::{self, Write};
use std::sync::OnceLock;

use afpa_netlab::inject::Random;

/// A prime: windows that wrap round do not repeat in step with anything.
const POOL: usize = 1_048_583;
const SEED: u64 = 0x5eed;

/// The content of one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Body {
    start: usize,
    length: u64,
}

impl Body {
    /// The content that belongs to a path and a length.
    pub fn of(path: &str, length: u64) -> Self {
        // FNV-1a: another path, another window.
        let hash = path.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
        });
        Self { start: (hash % POOL as u64) as usize, length }
    }

    /// Bytes of content.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Are these the content's bytes from `offset` on? More than there are is wrong as well.
    pub fn check(&self, offset: u64, mut bytes: &[u8]) -> bool {
        if offset.checked_add(bytes.len() as u64).is_none_or(|end| end > self.length) {
            return false;
        }
        let mut at = offset;
        while !bytes.is_empty() {
            let window = self.window(at);
            let count = window.len().min(bytes.len());
            let Some((now, rest)) = bytes.split_at_checked(count) else { return false };
            if window.get(..count) != Some(now) {
                return false;
            }
            (at, bytes) = (at + count as u64, rest);
        }
        true
    }

    /// Writes all of it.
    ///
    /// # Errors
    ///
    /// Errors of the writer.
    pub fn write(&self, to: &mut impl Write) -> io::Result<()> {
        let mut at = 0;
        while at < self.length {
            let window = self.window(at);
            let left = usize::try_from(self.length - at).unwrap_or(usize::MAX);
            let now = window.get(..left).unwrap_or(window);
            to.write_all(now)?;
            at += now.len() as u64;
        }
        Ok(())
    }

    /// The pool from where byte `at` lies to the pool's end: never empty.
    fn window(&self, at: u64) -> &'static [u8] {
        let from = (self.start as u64 + at) % POOL as u64;
        pool().get(from as usize..).unwrap_or_default()
    }
}

fn pool() -> &'static [u8] {
    static POOL_BYTES: OnceLock<Vec<u8>> = OnceLock::new();
    POOL_BYTES.get_or_init(|| {
        let mut random = Random::new(SEED);
        let mut bytes: Vec<u8> =
            (0..POOL / 8 + 1).flat_map(|_| random.next().to_ne_bytes()).collect();
        bytes.truncate(POOL);
        bytes
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(body: Body) -> Vec<u8> {
        let mut bytes = Vec::new();
        body.write(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn what_was_written_is_right_in_any_pieces() {
        for length in [0, 1, 64, 4096, POOL as u64 * 2 + 5] {
            let body = Body::of("/a", length);
            let bytes = written(body);
            assert_eq!(bytes.len() as u64, length);
            for piece in [1_000, 65_536, usize::MAX] {
                let mut at = 0;
                for piece in bytes.chunks(piece) {
                    assert!(body.check(at, piece));
                    at += piece.len() as u64;
                }
            }
        }
    }

    #[test]
    fn one_wrong_byte_and_one_too_many_are_found() {
        let body = Body::of("/a", 5_000);
        let mut bytes = written(body);
        bytes[4_999] ^= 1;
        assert!(!body.check(0, &bytes));
        bytes[4_999] ^= 1;
        assert!(body.check(0, &bytes));
        assert!(!body.check(1, &bytes));
        bytes.push(0);
        assert!(!body.check(0, &bytes));
        assert!(!body.check(u64::MAX, b"x"));
    }

    #[test]
    fn files_differ_from_each_other() {
        assert_ne!(written(Body::of("/a", 64)), written(Body::of("/b", 64)));
        assert_eq!(written(Body::of("/a", 64)), written(Body::of("/a", 64)));
    }
}
