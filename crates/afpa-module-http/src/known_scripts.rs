//! Scripts that a core has found lately: it need not look for them again while nothing changes below their root.
//!
//! A root has a number that changes with each change which its watch reports. A script is noted with the number of before
//! it was looked for, so one that was found in time has the number of now. The number also stands for the root.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

use afpa_cache::Millis;

use crate::script::Script;

/// The number of a document root: no other root has it, nor had it.
#[derive(Debug)]
pub(crate) struct ChangeNumber(AtomicU64);

/// The scripts of one core.
#[derive(Default)]
pub(crate) struct KnownScripts {
    hasher: RandomState,
    /// Each at the place that its hash says; none before the first script.
    places: Box<[Option<Known>]>,
}

struct Known {
    path: Box<[u8]>,
    script: Script,
    number: u64,
    since: Millis,
}

/// How many scripts a core knows at most, and how long their paths are.
const PLACES: usize = 256;
const LONGEST: usize = 256;

/// Milliseconds for which a script is known. A watch misses what is mounted over a directory.
const LASTS: u64 = 1_000;

impl ChangeNumber {
    /// Something has changed.
    pub(crate) fn advance(&self) {
        self.0.store(next(), Ordering::Release);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }
}

impl Default for ChangeNumber {
    fn default() -> Self {
        Self(AtomicU64::new(next()))
    }
}

impl KnownScripts {
    /// The script that a path leads to in the root with this number.
    pub(crate) fn get(&self, path: &[u8], number: u64, now: Millis) -> Option<&Script> {
        let known = self.places.get(self.place(path, number))?.as_ref()?;
        let is_fresh = now.0.saturating_sub(known.since.0) < LASTS;
        (known.number == number && is_fresh && *known.path == *path).then_some(&known.script)
    }

    /// Notes it. The number is that of before it was looked for.
    pub(crate) fn note(&mut self, path: &[u8], number: u64, since: Millis, script: &Script) {
        if path.len() > LONGEST || script.path.len() > 2 * LONGEST {
            return;
        }
        if self.places.is_empty() {
            self.places = (0..PLACES).map(|_| None).collect();
        }
        let place = self.place(path, number);
        if let Some(place) = self.places.get_mut(place) {
            *place = Some(Known { path: path.into(), script: script.clone(), number, since });
        }
    }

    fn place(&self, path: &[u8], number: u64) -> usize {
        self.hasher.hash_one((number, path)) as usize % PLACES
    }
}

fn next() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    LAST.fetch_add(1, Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_known_until_something_changes_and_for_a_second() {
        let script = Script { path: b"/a/index.php".to_vec(), info: Vec::new() };
        let (root, other) = (ChangeNumber::default(), ChangeNumber::default());
        let mut known = KnownScripts::default();
        let now = Millis(5_000);
        assert_eq!(known.get(b"/a/", root.get(), now), None);
        known.note(b"/a/", root.get(), now, &script);
        assert_eq!(known.get(b"/a/", root.get(), Millis(5_999)), Some(&script));
        assert_eq!(known.get(b"/a/", root.get(), Millis(6_000)), None, "a second later");
        assert_eq!(known.get(b"/a/", other.get(), now), None, "another root");
        assert_eq!(known.get(b"/b/", root.get(), now), None, "another path");
        let before = root.get();
        root.advance();
        assert_eq!(known.get(b"/a/", root.get(), now), None, "after a change");
        known.note(b"/a/", before, now, &script);
        assert_eq!(known.get(b"/a/", root.get(), now), None, "it was looked for before the change");
    }

    #[test]
    fn it_forgets_rather_than_grow() {
        let (root, mut known, now) = (ChangeNumber::default(), KnownScripts::default(), Millis(0));
        let paths: Vec<String> = (0..10 * PLACES).map(|n| format!("/{n}.php")).collect();
        for path in &paths {
            known.note(path.as_bytes(), root.get(), now, &Script::at(path.as_bytes(), path.len()));
        }
        let count =
            paths.iter().filter(|path| known.get(path.as_bytes(), root.get(), now).is_some());
        assert!((1..=PLACES).contains(&count.count()));
        let long = vec![b'x'; LONGEST + 1];
        known.note(&long, root.get(), now, &Script::at(&long, long.len()));
        assert_eq!(known.get(&long, root.get(), now), None);
    }
}
