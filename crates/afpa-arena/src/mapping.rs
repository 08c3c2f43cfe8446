//! The bytes behind an arena, and the only raw pointers of the project's user-mode half.

use std::io;

/// Zeroed memory at a fixed address. It is reserved; physical pages are allocated when they are first used.
pub(crate) struct Mapping {
    memory: Memory,
    len: usize,
}

impl Mapping {
    /// Reserves `len` bytes, at least one.
    pub(crate) fn reserve(len: usize) -> io::Result<Mapping> {
        debug_assert!(len > 0);
        Ok(Mapping { memory: Memory::reserve(len)?, len })
    }

    /// # Safety
    /// `start + len` is within the mapping, and no part of it is written while the slice lives.
    #[expect(unsafe_code, reason = "cuts a slice out of the mapping")]
    pub(crate) unsafe fn slice(&self, start: usize, len: usize) -> &[u8] {
        debug_assert!(start.checked_add(len).is_some_and(|end| end <= self.len));
        // JUSTIFICATION: shared and exclusive slices of one mapping must coexist.
        // SAFETY: in bounds by the contract above, initialised because the memory began as zeros,
        // alive as long as `self`.
        unsafe { std::slice::from_raw_parts(self.memory.address().add(start), len) }
    }

    /// # Safety
    /// `start + len` is within the mapping, and no part of it is in another slice while this lives.
    #[expect(unsafe_code, clippy::mut_from_ref, reason = "cuts a slice out of the mapping")]
    pub(crate) unsafe fn slice_mut(&self, start: usize, len: usize) -> &mut [u8] {
        debug_assert!(start.checked_add(len).is_some_and(|end| end <= self.len));
        // JUSTIFICATION: as for `slice`.
        // SAFETY: as for `slice`; the pointer was made for writing and the caller vouches that
        // no other slice has these bytes.
        unsafe { std::slice::from_raw_parts_mut(self.memory.address().add(start), len) }
    }

    /// Asks the kernel to keep every page of the mapping once it has been touched.
    #[cfg(not(miri))]
    #[expect(unsafe_code, reason = "mlock2 takes an address")]
    pub(crate) fn lock_on_fault(&self) -> rustix::io::Result<()> {
        use rustix::mm::{MlockFlags, mlock_with};
        // JUSTIFICATION: memmap2 offers plain `mlock` only, which would touch every page at once.
        // SAFETY: address and length are those of a live mapping that may be read.
        unsafe { mlock_with(self.memory.address().cast(), self.len, MlockFlags::ONFAULT) }
    }

    /// Gives the pages within a range back to the kernel. They are zeros when they are used again.
    #[cfg(not(miri))]
    #[expect(unsafe_code, reason = "madvise takes an address")]
    pub(crate) fn clear(&self, start: usize, len: usize) {
        use rustix::mm::{Advice, MlockFlags, madvise, mlock_with, munlock};
        let (first, end) = (start.next_multiple_of(PAGE), (start + len) / PAGE * PAGE);
        let Some(len) = end.checked_sub(first).filter(|len| *len > 0 && end <= self.len) else {
            return;
        };
        // JUSTIFICATION: memmap2 has no advice for a part of a raw mapping, and the kernel keeps pages that are locked.
        // SAFETY: the caller owns the range and has no slice of it, and the pages lie within it.
        unsafe {
            let address = self.memory.address().add(first).cast();
            if madvise(address, len, Advice::LinuxDontneedLocked).is_ok() {
                return;
            }
            // Before Linux 5.18.
            // Pages that were not locked stay so. A failure of these calls costs memory only.
            let was_locked = munlock(address, len).is_ok();
            let _kept = madvise(address, len, Advice::LinuxDontNeed);
            if was_locked {
                let _unlocked = mlock_with(address, len, MlockFlags::ONFAULT);
            }
        }
    }

    /// Miri has no pages.
    #[cfg(miri)]
    pub(crate) fn clear(&self, _start: usize, _len: usize) {}

    /// Miri has no memory locks.
    #[cfg(miri)]
    pub(crate) fn lock_on_fault(&self) -> rustix::io::Result<()> {
        Err(rustix::io::Errno::NOSYS)
    }

    /// Bytes of the mapping.
    pub(crate) fn len(&self) -> usize {
        self.len
    }
}

/// Where pages are larger, the kernel refuses to take back a part of one.
#[cfg(not(miri))]
const PAGE: usize = 4096;

#[cfg(not(miri))]
struct Memory(memmap2::MmapRaw);

#[cfg(not(miri))]
impl Memory {
    /// No swap is reserved: the limit is about locking memory, not about reserving it.
    fn reserve(len: usize) -> io::Result<Memory> {
        let map = memmap2::MmapOptions::new().len(len).no_reserve_swap().map_anon()?;
        Ok(Memory(map.into()))
    }

    fn address(&self) -> *mut u8 {
        self.0.as_mut_ptr()
    }
}

/// Under Miri, which does not support this use of mmap, the bytes come from the heap.
#[cfg(miri)]
struct Memory(Box<[std::cell::UnsafeCell<u8>]>);

#[cfg(miri)]
impl Memory {
    fn reserve(len: usize) -> io::Result<Memory> {
        Ok(Memory((0..len).map(|_| std::cell::UnsafeCell::new(0)).collect()))
    }

    fn address(&self) -> *mut u8 {
        std::cell::UnsafeCell::raw_get(self.0.as_ptr())
    }
}

// JUSTIFICATION: the stand-in must be shared like the mapping it stands for.
// SAFETY: its bytes are reached through `Mapping::slice` and `slice_mut` only, whose callers
// exclude conflicting accesses.
#[cfg(miri)]
#[expect(unsafe_code, reason = "stand-in for a mapping that is shared between threads")]
unsafe impl Sync for Memory {}
