//! The places of responses in the kernel: slots, and pages for the bytes of those that are longer than a slot.
//!
//! Places have numbers, from 1. The first ones are *ready*: an array that was allocated when the programs were loaded, and is mapped
//! here. The others take memory when they are filled, and give it back; the programs look for them in a hash, behind the array.
//! Raw pointers stay within this file.

use std::io;
use std::marker::PhantomData;
use std::mem::offset_of;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use afpa_abi::{PAGES_MAX, Page, Slot};
use libbpf_rs::{ErrorKind, MapCore, MapFlags, MapHandle};
use memmap2::{MmapOptions, MmapRaw};

/// The kernel's memory for a ready slot.
pub const VARIANT_BYTES: usize = size_of::<Slot>();

/// The kernel's memory for a ready page.
pub const PAGE_BYTES: usize = size_of::<Page>();

/// The kernel's memory for another slot: its allocator rounds an entry with its number and its links up to this.
pub const MORE_VARIANT_BYTES: usize = 4096;

/// The same for another page.
pub const MORE_PAGE_BYTES: usize = 8192;

/// Bytes of an entry besides its value.
const LINKS: usize = 64;
const _: () = assert!(size_of::<Slot>() + LINKS <= MORE_VARIANT_BYTES);
const _: () = assert!(size_of::<Page>() + LINKS <= MORE_PAGE_BYTES);

/// The kernel refills its stock of memory behind a call that found none, so that the second one finds some.
const TRIES: usize = 3;

/// Places of values `T`.
struct Places<T> {
    ready: MmapRaw,
    /// The numbers of ready places end before this one.
    more_from: u32,
    more: MapHandle,
    value: PhantomData<T>,
}

impl<T> Places<T> {
    fn over(ready: &MapHandle, more: MapHandle) -> io::Result<Self> {
        if [ready, &more].iter().any(|map| map.value_size() as usize != size_of::<T>()) {
            return Err(io::Error::other("they have another size than expected"));
        }
        let more_from = ready.max_entries();
        let bytes = more_from as usize * size_of::<T>();
        let ready = MmapOptions::new().len(bytes).map_raw(ready.as_fd().as_raw_fd())?;
        Ok(Self { ready, more_from, more, value: PhantomData })
    }

    /// The numbers end before this one.
    fn len(&self) -> u32 {
        self.more_from.saturating_add(self.more.max_entries() - 1) // a map has an entry at least
    }

    /// A ready place; none: another one.
    fn at(&self, index: u32) -> Option<*mut T> {
        assert!(index != 0 && index < self.len(), "place {index} of {}", self.len());
        if index >= self.more_from {
            return None;
        }
        // JUSTIFICATION: the kernel reads the array while we write.
        // SAFETY: the mapping has `more_from` values.
        Some(unsafe { self.ready.as_mut_ptr().cast::<T>().add(index as usize) })
    }

    /// Fills a place that is not ready. False: the kernel has no memory for it now.
    fn fill(&self, index: u32, value: &[u8]) -> libbpf_rs::Result<bool> {
        for _ in 0..TRIES {
            match self.more.update(&index.to_ne_bytes(), value, MapFlags::ANY) {
                Err(error) if error.kind() == ErrorKind::OutOfMemory => {}
                other => return other.map(|()| true),
            }
        }
        Ok(false)
    }

    /// The bytes of a place that is not ready; none: it has no memory.
    fn bytes(&self, index: u32) -> Option<Vec<u8>> {
        self.more.lookup(&index.to_ne_bytes(), MapFlags::ANY).ok().flatten()
    }

    /// Gives back the memory of a place that is not ready. One that has none, because it was never filled, is as good.
    fn give_back(&self, index: u32) {
        let _ = self.more.delete(&index.to_ne_bytes());
    }

    /// The places that are not ready and have memory.
    fn filled(&self) -> Vec<u32> {
        let number = |key: Vec<u8>| Some(u32::from_ne_bytes(key.try_into().ok()?));
        self.more.keys().filter_map(number).collect()
    }
}

/// The slots.
pub(crate) struct Slots(Places<Slot>);

impl Slots {
    pub(crate) fn over(ready: &MapHandle, more: MapHandle) -> io::Result<Self> {
        Places::over(ready, more).map(Self)
    }

    /// The numbers end before this one.
    pub(crate) fn len(&self) -> u32 {
        self.0.len()
    }

    /// The first number that is not of a ready place.
    pub(crate) fn more_from(&self) -> u32 {
        self.0.more_from
    }

    /// Replaces a vacant slot. `slot.version` appears last, so that a program sees all of it or none. False: the kernel has no
    /// memory for it now.
    ///
    /// # Errors
    ///
    /// The errors of the system call.
    pub(crate) fn write(&self, index: u32, slot: &Slot) -> libbpf_rs::Result<bool> {
        let Some(place) = self.0.at(index) else { return self.0.fill(index, &slot.to_bytes()) };
        self.vacate(index);
        let mut unborn = *slot;
        unborn.version = 0;
        // JUSTIFICATION: the kernel reads the array while we write.
        // SAFETY: within the mapping, as `at` says; no object leads to the slot, and its version is 0.
        unsafe { place.write_volatile(unborn) };
        version_at(place).store(slot.version, Ordering::SeqCst);
        Ok(true)
    }

    /// From now on no answer is repeated from this slot. A program that is at work with it notices that the version has changed:
    /// at once where the slot is ready, else when its memory is used anew, which begins with the version. Until then the
    /// version stays, so pages of such a slot are to be kept until no program can be at work with it.
    pub(crate) fn vacate(&self, index: u32) {
        match self.0.at(index) {
            Some(place) => version_at(place).store(0, Ordering::SeqCst),
            None => self.0.give_back(index),
        }
    }

    /// The version in a slot; 0: vacant.
    pub(crate) fn version(&self, index: u32) -> u64 {
        match self.0.at(index) {
            Some(place) => version_at(place).load(Ordering::Relaxed),
            None => (self.0.bytes(index))
                .map_or(0, |slot| u64::from_ne_bytes(part(&slot, offset_of!(Slot, version)))),
        }
    }

    /// Whether an answer of it was given since it was written.
    pub(crate) fn is_used(&self, index: u32) -> bool {
        match self.0.at(index) {
            Some(place) => {
                // JUSTIFICATION: as for `write`. SAFETY: `at` gives a pointer into the mapping, aligned.
                let used = unsafe { AtomicU32::from_ptr(&raw mut (*place).used) };
                used.load(Ordering::Relaxed) != 0
            }
            None => (self.0.bytes(index))
                .is_some_and(|slot| part(&slot, offset_of!(Slot, used)) != [0; 4]),
        }
    }

    /// The pages of a slot: to be taken for nothing but numbers.
    pub(crate) fn pages(&self, index: u32) -> [u32; PAGES_MAX] {
        match self.0.at(index) {
            Some(place) => {
                // JUSTIFICATION: as for `write`. SAFETY: `at` gives a pointer into the mapping; any bytes are numbers.
                unsafe { (&raw const (*place).pages).read_volatile() }
            }
            None => self.0.bytes(index).map_or([0; PAGES_MAX], |slot| {
                let at = |page| offset_of!(Slot, pages) + 4 * page;
                std::array::from_fn(|page| u32::from_ne_bytes(part(&slot, at(page))))
            }),
        }
    }

    /// The slots that are not vacant, with their versions.
    pub(crate) fn occupied(&self) -> Vec<(u32, u64)> {
        let numbers = (1..self.0.more_from).chain(self.0.filled());
        let occupied = numbers.filter(|index| *index < self.len());
        let occupied = occupied.map(|index| (index, self.version(index)));
        occupied.filter(|(_, version)| *version != 0).collect()
    }
}

/// The pages.
pub(crate) struct Pages(Places<Page>);

impl Pages {
    pub(crate) fn over(ready: &MapHandle, more: MapHandle) -> io::Result<Self> {
        Places::over(ready, more).map(Self)
    }

    /// The numbers end before this one.
    pub(crate) fn len(&self) -> u32 {
        self.0.len()
    }

    /// The first number that is not of a ready place.
    pub(crate) fn more_from(&self) -> u32 {
        self.0.more_from
    }

    /// Fills a page that no slot leads to with as many of the `bytes` as it holds, and zeros behind them. False: the kernel
    /// has no memory for it now.
    ///
    /// # Errors
    ///
    /// The errors of the system call.
    pub(crate) fn write(&self, index: u32, bytes: &[u8]) -> libbpf_rs::Result<bool> {
        let mut page = Page::ZERO;
        let count = bytes.len().min(page.bytes.len());
        page.bytes[..count].copy_from_slice(&bytes[..count]);
        let Some(place) = self.0.at(index) else { return self.0.fill(index, &page.to_bytes()) };
        // JUSTIFICATION: the kernel reads the array while we write.
        // SAFETY: within the mapping, as `at` says; every slot that names the page is vacant.
        unsafe { place.write_volatile(page) };
        Ok(true)
    }

    /// No slot leads to the page any more.
    pub(crate) fn vacate(&self, index: u32) {
        if self.0.at(index).is_none() {
            self.0.give_back(index);
        }
    }

    /// Gives back what an earlier process left, except the pages that are in use.
    pub(crate) fn vacate_all_but(&self, is_used: impl Fn(u32) -> bool) {
        let filled = self.0.filled().into_iter();
        filled.filter(|number| !is_used(*number)).for_each(|number| self.0.give_back(number));
    }

    /// For tests: pages that are not ready and have memory.
    pub(crate) fn filled(&self) -> usize {
        self.0.filled().len()
    }
}

fn version_at<'s>(place: *mut Slot) -> &'s AtomicU64 {
    // JUSTIFICATION: kernel and user mode read memory that one of them writes.
    // SAFETY: `Places::at` gave the pointer, into the mapping of the caller, 8-aligned.
    unsafe { AtomicU64::from_ptr(&raw mut (*place).version) }
}

/// The `N` bytes at a place of a value.
fn part<const N: usize>(value: &[u8], at: usize) -> [u8; N] {
    value.get(at..at + N).and_then(|bytes| bytes.try_into().ok()).unwrap_or([0; N])
}
