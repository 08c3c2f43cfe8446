//! Memory shared with the programs: the settings-and-clock region, and arrays of words.
//!
//! The only place with raw pointers, with `cache/places.rs`. Words that programs read while we write are atomics here; longer
//! pieces are protected by the order of writes that `abi.h` and `clock.h` describe.

use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use afpa_abi::{DATES, Date, INTERFACES, PATH_FILTER_BITS, POLICE_CLASSES, Pace, Shared};
use libbpf_rs::{MapCore, MapHandle};
use memmap2::{MmapOptions, MmapRaw};

/// The mapped `struct afpa_shared`.
pub(crate) struct Region(MmapRaw);

impl Region {
    pub(crate) fn map(map: &MapHandle) -> std::io::Result<Self> {
        if (map.value_size() as usize) < size_of::<Shared>() {
            return Err(std::io::Error::other("shared region is too small"));
        }
        Ok(Self(MmapOptions::new().len(size_of::<Shared>()).map_raw(map.as_fd().as_raw_fd())?))
    }

    fn shared(&self) -> *mut Shared {
        self.0.as_mut_ptr().cast()
    }

    pub(crate) fn pulse(&self) -> &AtomicU64 {
        // JUSTIFICATION: the kernel reads the word at any time. SAFETY: aligned, mapped as long as self.
        unsafe { AtomicU64::from_ptr(&raw mut (*self.shared()).pulse) }
    }

    pub(crate) fn hash_seed(&self) -> &AtomicU64 {
        // JUSTIFICATION: as for `pulse`. SAFETY: aligned, mapped as long as self.
        unsafe { AtomicU64::from_ptr(&raw mut (*self.shared()).hash_seed) }
    }

    pub(crate) fn refresh_ns(&self) -> &AtomicU64 {
        // JUSTIFICATION: as for `pulse`. SAFETY: aligned, mapped as long as self.
        unsafe { AtomicU64::from_ptr(&raw mut (*self.shared()).refresh_ns) }
    }

    pub(crate) fn not_first(&self) -> &AtomicU64 {
        // JUSTIFICATION: as for `pulse`. SAFETY: aligned, mapped as long as self.
        unsafe { AtomicU64::from_ptr(&raw mut (*self.shared()).not_first) }
    }

    pub(crate) fn generation(&self) -> &AtomicU32 {
        // JUSTIFICATION: as for `pulse`. SAFETY: aligned, mapped as long as self.
        unsafe { AtomicU32::from_ptr(&raw mut (*self.shared()).generation) }
    }

    pub(crate) fn log_every(&self) -> &AtomicU32 {
        // JUSTIFICATION: as for `pulse`. SAFETY: aligned, mapped as long as self.
        unsafe { AtomicU32::from_ptr(&raw mut (*self.shared()).log_every) }
    }

    pub(crate) fn checked_mask(&self) -> &AtomicU32 {
        // JUSTIFICATION: as for `pulse`. SAFETY: aligned, mapped as long as self.
        unsafe { AtomicU32::from_ptr(&raw mut (*self.shared()).checked_mask) }
    }

    pub(crate) fn assigned_sets(&self) -> &AtomicU32 {
        // JUSTIFICATION: as for `pulse`. SAFETY: aligned, mapped as long as self.
        unsafe { AtomicU32::from_ptr(&raw mut (*self.shared()).assigned_sets) }
    }

    pub(crate) fn answer_max(&self) -> &AtomicU32 {
        // JUSTIFICATION: as for `pulse`. SAFETY: aligned, mapped as long as self.
        unsafe { AtomicU32::from_ptr(&raw mut (*self.shared()).answer_max) }
    }

    pub(crate) fn transfer_ns(&self) -> &AtomicU64 {
        // JUSTIFICATION: as for `pulse`. SAFETY: aligned, mapped as long as self.
        unsafe { AtomicU64::from_ptr(&raw mut (*self.shared()).transfer_ns) }
    }

    pub(crate) fn rtx_ns(&self) -> &AtomicU64 {
        // JUSTIFICATION: as for `pulse`. SAFETY: aligned, mapped as long as self.
        unsafe { AtomicU64::from_ptr(&raw mut (*self.shared()).rtx_ns) }
    }

    pub(crate) fn bypass_after(&self) -> &AtomicU32 {
        // JUSTIFICATION: as for `pulse`. SAFETY: aligned, mapped as long as self.
        unsafe { AtomicU32::from_ptr(&raw mut (*self.shared()).bypass_after) }
    }

    pub(crate) fn pins(&self) -> &AtomicU32 {
        // JUSTIFICATION: as for `pulse`. SAFETY: aligned, mapped as long as self.
        unsafe { AtomicU32::from_ptr(&raw mut (*self.shared()).pins) }
    }

    pub(crate) fn sample_every(&self) -> &AtomicU32 {
        // JUSTIFICATION: as for `pulse`. SAFETY: aligned, mapped as long as self.
        unsafe { AtomicU32::from_ptr(&raw mut (*self.shared()).sample_every) }
    }

    pub(crate) fn bypass_time(&self) -> &AtomicU32 {
        // JUSTIFICATION: as for `pulse`. SAFETY: aligned, mapped as long as self.
        unsafe { AtomicU32::from_ptr(&raw mut (*self.shared()).bypass_time) }
    }

    pub(crate) fn client_connections(&self) -> &AtomicU32 {
        // JUSTIFICATION: as for `pulse`. SAFETY: aligned, mapped as long as self.
        unsafe { AtomicU32::from_ptr(&raw mut (*self.shared()).client_connections) }
    }

    pub(crate) fn next_hops(&self) -> &AtomicU32 {
        // JUSTIFICATION: as for `pulse`. SAFETY: aligned, mapped as long as self.
        unsafe { AtomicU32::from_ptr(&raw mut (*self.shared()).next_hops) }
    }

    pub(crate) fn flood_syns(&self) -> &AtomicU32 {
        // JUSTIFICATION: as for `pulse`. SAFETY: aligned, mapped as long as self.
        unsafe { AtomicU32::from_ptr(&raw mut (*self.shared()).flood_syns) }
    }

    pub(crate) fn firewall_interval(&self) -> &AtomicU32 {
        // JUSTIFICATION: as for `pulse`. SAFETY: aligned, mapped as long as self.
        unsafe { AtomicU32::from_ptr(&raw mut (*self.shared()).firewall_interval) }
    }

    pub(crate) fn old_kept(&self) -> &AtomicU32 {
        // JUSTIFICATION: as for `pulse`. SAFETY: aligned, mapped as long as self.
        unsafe { AtomicU32::from_ptr(&raw mut (*self.shared()).old_kept) }
    }

    pub(crate) fn paused(&self) -> &AtomicU32 {
        // JUSTIFICATION: as for `pulse`. SAFETY: aligned, mapped as long as self.
        unsafe { AtomicU32::from_ptr(&raw mut (*self.shared()).paused) }
    }

    pub(crate) fn notes_requests(&self) -> &AtomicU32 {
        // JUSTIFICATION: as for `pulse`. SAFETY: aligned, mapped as long as self.
        unsafe { AtomicU32::from_ptr(&raw mut (*self.shared()).notes_requests) }
    }

    pub(crate) fn fields_matter(&self) -> &AtomicU32 {
        // JUSTIFICATION: as for `pulse`. SAFETY: aligned, mapped as long as self.
        unsafe { AtomicU32::from_ptr(&raw mut (*self.shared()).fields_matter) }
    }

    pub(crate) fn police(&self) -> &AtomicU32 {
        // JUSTIFICATION: as for `pulse`. SAFETY: aligned, mapped as long as self.
        unsafe { AtomicU32::from_ptr(&raw mut (*self.shared()).police) }
    }

    /// One of the four words of the police's masks.
    pub(crate) fn police_mask(&self, at: usize) -> &AtomicU64 {
        // JUSTIFICATION: as for `pulse`. SAFETY: `at % 4` is within the array; aligned, mapped.
        unsafe {
            AtomicU64::from_ptr((&raw mut (*self.shared()).police_masks).cast::<u64>().add(at % 4))
        }
    }

    /// Interval and tolerance of the share of a class.
    pub(crate) fn class_pace(&self, class: usize) -> [&AtomicU64; 2] {
        // JUSTIFICATION: as for `pulse`. SAFETY: the remainder is within the array; aligned, mapped as long as self.
        unsafe {
            let paces = (&raw mut (*self.shared()).class_paces).cast::<Pace>();
            let pace = paces.add(class % POLICE_CLASSES);
            [
                AtomicU64::from_ptr(&raw mut (*pace).interval),
                AtomicU64::from_ptr(&raw mut (*pace).tolerance),
            ]
        }
    }

    /// Interval and tolerance of one of the four rates: the two of connections come first, then the two of requests.
    pub(crate) fn police_pace(&self, at: usize) -> [&AtomicU64; 2] {
        // JUSTIFICATION: as for `pulse`. SAFETY: `at % 2` is within the arrays; aligned, mapped as long as self.
        unsafe {
            let paces = match at / 2 {
                0 => (&raw mut (*self.shared()).connection_paces).cast::<Pace>(),
                _ => (&raw mut (*self.shared()).request_paces).cast::<Pace>(),
            };
            let pace = paces.add(at % 2);
            [
                AtomicU64::from_ptr(&raw mut (*pace).interval),
                AtomicU64::from_ptr(&raw mut (*pace).tolerance),
            ]
        }
    }

    pub(crate) fn handshake(&self) -> &AtomicU32 {
        // JUSTIFICATION: as for `pulse`. SAFETY: aligned, mapped as long as self.
        unsafe { AtomicU32::from_ptr(&raw mut (*self.shared()).handshake) }
    }

    pub(crate) fn lost_clients(&self) -> &AtomicU64 {
        // JUSTIFICATION: as for `pulse`. SAFETY: aligned, mapped as long as self.
        unsafe { AtomicU64::from_ptr(&raw mut (*self.shared()).lost_clients) }
    }

    pub(crate) fn window_scale(&self) -> &AtomicU32 {
        // JUSTIFICATION: as for `pulse`. SAFETY: aligned, mapped as long as self.
        unsafe { AtomicU32::from_ptr(&raw mut (*self.shared()).window_scale) }
    }

    /// One of the two words of the cookies' key.
    pub(crate) fn cookie_key(&self, word: usize) -> &AtomicU64 {
        // JUSTIFICATION: as for `pulse`. SAFETY: `word` modulo the array's length; aligned, mapped.
        unsafe {
            AtomicU64::from_ptr((&raw mut (*self.shared()).cookie_key).cast::<u64>().add(word % 2))
        }
    }

    /// The word of the port filter that holds `port`.
    pub(crate) fn ports(&self, port: u16) -> &AtomicU64 {
        let word = usize::from(port) / 64;
        // JUSTIFICATION: as for `pulse`. SAFETY: `word` < 1024, the array's length; aligned, mapped.
        unsafe { AtomicU64::from_ptr((&raw mut (*self.shared()).ports).cast::<u64>().add(word)) }
    }

    /// The word of the path filter that holds `bit`.
    pub(crate) fn paths(&self, bit: usize) -> &AtomicU64 {
        let word = bit % PATH_FILTER_BITS / 64;
        // JUSTIFICATION: as for `pulse`. SAFETY: `word` < 1024, the array's length; aligned, mapped.
        unsafe { AtomicU64::from_ptr((&raw mut (*self.shared()).paths).cast::<u64>().add(word)) }
    }

    /// The interface that is counted at `place`.
    pub(crate) fn interface(&self, place: usize) -> &AtomicU32 {
        let word = place % INTERFACES;
        // JUSTIFICATION: as for `pulse`. SAFETY: `word` < INTERFACES; aligned, mapped.
        unsafe {
            AtomicU32::from_ptr((&raw mut (*self.shared()).interfaces).cast::<u32>().add(word))
        }
    }

    /// No interface is counted apart.
    pub(crate) fn forget_interfaces(&self) {
        (0..INTERFACES).for_each(|place| self.interface(place).store(0, Ordering::SeqCst));
    }

    /// No path is pinned.
    pub(crate) fn forget_paths(&self) {
        (0..PATH_FILTER_BITS)
            .step_by(64)
            .for_each(|bit| self.paths(bit).store(0, Ordering::SeqCst));
    }

    /// Write the Date of a second, unless it is there: answers that are repeated rely on it.
    pub(crate) fn put_date(&self, date: Date) {
        let index = date.second as usize % DATES;
        // JUSTIFICATION: one of 256 entries is replaced while programs read others.
        // SAFETY: `index` < DATES; only `beat` writes here, under its lock; a program reads an entry
        // only when the pulse points to it or its second matches, and neither holds before we are done.
        unsafe {
            let entry = (&raw mut (*self.shared()).dates).cast::<Date>().add(index);
            let second = AtomicU64::from_ptr(&raw mut (*entry).second);
            if second.load(Ordering::Relaxed) == date.second {
                return;
            }
            second.store(0, Ordering::SeqCst);
            (&raw mut (*entry).text).write_volatile(date.text);
            (&raw mut (*entry).sum_even).write_volatile(date.sum_even);
            (&raw mut (*entry).sum_odd).write_volatile(date.sum_odd);
            second.store(date.second, Ordering::SeqCst);
        }
    }
}

/// A mapped array of words, which both worlds read and write at any time.
pub(crate) struct Words {
    map: MmapRaw,
    words: usize,
}

impl Words {
    /// Entries of another size than `entry` bytes are refused.
    pub(crate) fn map(map: &MapHandle, entry: usize) -> std::io::Result<Self> {
        if map.value_size() as usize != entry {
            return Err(std::io::Error::other("its entries have another size than expected"));
        }
        let bytes = map.max_entries() as usize * entry;
        let mapped = MmapOptions::new().len(bytes).map_raw(map.as_fd().as_raw_fd())?;
        Ok(Self { map: mapped, words: bytes / size_of::<u64>() })
    }

    /// All words.
    pub(crate) fn all(&self) -> &[AtomicU64] {
        // JUSTIFICATION: kernel and user mode read memory that one of them writes.
        // SAFETY: the mapping has so many words, aligned to a page, and lives as long as self; all access is atomic.
        unsafe { std::slice::from_raw_parts(self.map.as_ptr().cast::<AtomicU64>(), self.words) }
    }

    /// The word at a place, which is below the number of words.
    pub(crate) fn at(&self, place: usize) -> &AtomicU64 {
        &self.all()[place]
    }
}
