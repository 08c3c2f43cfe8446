//! Header blocks that the programs remember, for what events do not say of a request.

use afpa_abi::{CHECKED_MAX, CheckedHead, Event};
use libbpf_rs::{MapCore, MapFlags};

use crate::load::FastPath;

impl FastPath {
    /// The header block of an answered request: its field lines as they came, the blank line included.
    /// `None`: it was not remembered, or another one has taken its place since.
    pub fn header_block(&self, event: &Event) -> Option<Vec<u8>> {
        if event.block_sequence == 0 {
            return None;
        }
        let read = || self.checked.lookup(&event.block.to_ne_bytes(), MapFlags::ANY).ok().flatten();
        let entry = read()?;
        // A program may write while the kernel copies: its sequence moves before the first byte does.
        let before = sequence(&entry)?;
        if before != event.block_sequence || sequence(&read()?)? != before {
            return None;
        }
        block(&entry).map(<[u8]>::to_vec)
    }
}

fn sequence(entry: &[u8]) -> Option<u32> {
    entry.first_chunk().map(|word| u32::from_ne_bytes(*word))
}

/// The bytes of a `struct afpa_checked`.
fn block(entry: &[u8]) -> Option<&[u8]> {
    let at = std::mem::offset_of!(CheckedHead, length);
    let length = u32::from_ne_bytes(*entry.get(at..)?.first_chunk()?) as usize;
    entry.get(size_of::<CheckedHead>()..)?.get(..length.min(CHECKED_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_of_an_entry() {
        let mut entry = vec![0; size_of::<CheckedHead>() + CHECKED_MAX];
        entry[..4].copy_from_slice(&6u32.to_ne_bytes());
        entry[12..16].copy_from_slice(&5u32.to_ne_bytes());
        entry[48..53].copy_from_slice(b"a: b\r");
        assert_eq!(sequence(&entry), Some(6));
        assert_eq!(block(&entry), Some(&b"a: b\r"[..]));
        entry[12..16].copy_from_slice(&u32::MAX.to_ne_bytes());
        assert_eq!(block(&entry).map(<[u8]>::len), Some(CHECKED_MAX));
        assert_eq!(block(&entry[..20]), None);
    }
}
