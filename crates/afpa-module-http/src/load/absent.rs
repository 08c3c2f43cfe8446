//! Paths that named nothing when they were last looked for.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU32, Ordering};

/// Paths that named nothing, of all document roots, as far as it remembers. It tells where a core may ask the kernel's
/// cache of names itself: a path that nobody has looked for is not in that cache, and an existing file has to be opened
/// by a thread in any case.
///
/// It only saves system calls, so it may forget, and take one path for another.
pub(crate) struct Absent {
    hasher: RandomState,
    /// Halves of hashes, each at the place that the other half says.
    seen: Box<[AtomicU32]>,
}

/// 64 KB for all document roots. Robots try some thousand names.
const PLACES: usize = 16_384;

impl Absent {
    pub(crate) fn note(&self, root: u32, path: &[u8]) {
        let (half, place) = self.place(root, path);
        place.store(half, Ordering::Relaxed);
    }

    pub(crate) fn has(&self, root: u32, path: &[u8]) -> bool {
        let (half, place) = self.place(root, path);
        place.load(Ordering::Relaxed) == half
    }

    fn place(&self, root: u32, path: &[u8]) -> (u32, &AtomicU32) {
        let hash = self.hasher.hash_one((root, path));
        ((hash >> 32) as u32, &self.seen[hash as usize % PLACES])
    }
}

impl Default for Absent {
    fn default() -> Self {
        let seen = (0..PLACES).map(|_| AtomicU32::default()).collect();
        Self { hasher: RandomState::new(), seen }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_has_what_was_noted_and_forgets_rather_than_grow() {
        let absent = Absent::default();
        assert!(!absent.has(1, b"/none"));
        absent.note(1, b"/none");
        assert!(absent.has(1, b"/none") && !absent.has(1, b"/other") && !absent.has(2, b"/none"));
        let paths: Vec<String> = (0..10 * PLACES).map(|n| format!("/{n}")).collect();
        paths.iter().for_each(|path| absent.note(1, path.as_bytes()));
        let known = paths.iter().filter(|path| absent.has(1, path.as_bytes())).count();
        assert!((1..=PLACES).contains(&known), "{known}");
    }
}
