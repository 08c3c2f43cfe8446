//! The servers of a model, its machines' secret, and their number.

use afpa_fleet::Secret;

pub(crate) const MACHINES: usize = 3;

pub(crate) fn secret() -> Secret {
    Secret::of(&[7; 32]).expect("long enough")
}

/// The servers: a record that a write replaces if it names its revision.
#[derive(Default)]
pub(crate) struct Servers {
    pub(crate) revision: u64,
    pub(crate) record: Option<(u64, Vec<u8>)>,
    /// Those that were there before.
    pub(crate) earlier: Vec<(u64, Vec<u8>)>,
}

impl Servers {
    /// Takes a write over the record of a revision; `None`: another write was there before it.
    pub(crate) fn take(&mut self, over: u64, bytes: &[u8]) -> Option<u64> {
        let last = self.record.as_ref().map_or(0, |(revision, _)| *revision);
        if last != over {
            return None;
        }
        self.revision += 1;
        let next = (self.revision, bytes.to_vec());
        self.earlier.extend(self.record.replace(next));
        Some(self.revision)
    }
}
