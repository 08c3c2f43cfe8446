//! The kernel's memory, made wrong.

use libbpf_rs::query::MapInfoIter;
use libbpf_rs::{MapCore, MapFlags, MapHandle};

/// Replaces `from`, a whole content that only this test's server has, by `to` in all answers that kernels of this
/// machine have.
pub fn spoil(from: &[u8], to: &[u8]) {
    let all = MapInfoIter::default().filter(|info| info.name == "slots");
    let all: Vec<_> = all.map(|info| (info.id, info.max_entries)).collect();
    let mut spoilt = 0;
    for (id, slots) in all {
        let Ok(map) = MapHandle::from_map_id(id) else { continue }; // its test has just ended
        for key in (1..slots).map(u32::to_ne_bytes) {
            let Ok(Some(mut slot)) = map.lookup(&key, MapFlags::ANY) else { continue };
            let at = slot
                .windows(4 + from.len())
                .position(|bytes| bytes.starts_with(b"\r\n\r\n") && bytes.ends_with(from));
            if let Some(at) = at {
                slot[at + 4..at + 4 + to.len()].copy_from_slice(to);
                map.update(&key, &slot, MapFlags::ANY).expect("written");
                spoilt += 1;
            }
        }
    }
    assert!(spoilt > 0, "no slot has this answer");
}
