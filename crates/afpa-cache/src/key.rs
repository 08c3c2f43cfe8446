//! The name of a cache object.

use std::fmt;
use std::hash::BuildHasher;
use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::Equivalent;

/// The name of a cache object: the number of its document root, and the normalised path below that.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Key {
    /// Number of the document root.
    pub site: u32,
    /// Normalised path; begins with `/`.
    pub path: Arc<[u8]>,
}

impl Key {
    /// A key with its own copy of `path`.
    pub fn new(site: u32, path: &[u8]) -> Key {
        Key { site, path: path.into() }
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.site, self.path.escape_ascii())
    }
}

/// A borrowed [`Key`], so that a look-up need not copy the path. It hashes as the key does.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct KeyRef<'a> {
    pub(crate) site: u32,
    pub(crate) path: &'a [u8],
}

/// Hash of a key, for all tables. It has 32 bits, as it is kept for each object, and as two keys may have one hash anyway.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct KeyHash(u32);

impl KeyHash {
    pub(crate) fn of(hasher: &RandomState, key: KeyRef<'_>) -> Self {
        let hash = hasher.hash_one(key);
        Self((hash ^ (hash >> 32)) as u32)
    }

    /// The hash as a hash table wants it: its bits at both ends, because those tell buckets and their neighbours apart.
    pub(crate) fn wide(self) -> u64 {
        u64::from(self.0) << 32 | u64::from(self.0)
    }

    /// The hash, for policies.
    pub(crate) fn fingerprint(self) -> u32 {
        self.0
    }
}

impl KeyRef<'_> {
    pub(crate) fn names(&self, key: &Key) -> bool {
        self.site == key.site && *self.path == *key.path
    }
}

impl<'a> From<&'a Key> for KeyRef<'a> {
    fn from(key: &'a Key) -> Self {
        KeyRef { site: key.site, path: &key.path }
    }
}

impl Equivalent<Key> for KeyRef<'_> {
    fn equivalent(&self, key: &Key) -> bool {
        self.names(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_borrowed_key_hashes_as_its_key() {
        let state = RandomState::default();
        for path in [&b"/"[..], b"/a", b"/a/rather/long/path/with/more/than/sixteen/bytes"] {
            let (key, borrowed) = (Key::new(3, path), KeyRef { site: 3, path });
            assert_eq!(state.hash_one(&key), state.hash_one(borrowed));
            assert!(borrowed.equivalent(&key));
            assert!(!KeyRef { site: 4, path }.equivalent(&key));
        }
    }
}
