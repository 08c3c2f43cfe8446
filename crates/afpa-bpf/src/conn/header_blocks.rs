//! Header blocks that the programs remember: the fields of a request, which events do not have.

use afpa_abi::{CHECKED_MAX, Checked, Event};
use libbpf_rs::{MapCore, MapFlags};

use crate::conn::reports::Reports;

impl Reports {
    /// The header block of an answered request: its field lines as they came, the blank line included.
    /// `None`: the programs did not remember it, or have replaced it since.
    pub fn header_block(&self, event: &Event) -> Option<Vec<u8>> {
        if event.block_sequence == 0 {
            return None;
        }
        let read = || {
            let entry = self.checked.lookup(&event.block.to_ne_bytes(), MapFlags::ANY).ok()??;
            Checked::from_bytes(&entry)
        };
        let entry = read()?;
        // A program may write while the kernel copies: it changes the sequence before the first byte.
        if [entry.sequence, read()?.sequence] != [event.block_sequence; 2] {
            return None;
        }
        Some(block(&entry).to_vec())
    }
}

fn block(entry: &Checked) -> &[u8] {
    &entry.bytes[..(entry.length as usize).min(CHECKED_MAX)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_of_an_entry() {
        let mut entry = Checked { length: 5, ..Checked::ZERO };
        entry.bytes[..5].copy_from_slice(b"a: b\r");
        assert_eq!(block(&entry), b"a: b\r");
        entry.length = u32::MAX;
        assert_eq!(block(&entry).len(), CHECKED_MAX);
    }
}
