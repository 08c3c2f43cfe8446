//! The bytes of responses that are longer than a slot, in a table of the kernel's that holds what is used and no more.

use std::io;

use afpa_abi::Page;
use libbpf_rs::{MapCore, MapFlags, MapHandle};

/// The kernel's memory for one page: its allocator rounds an entry, which is a page, its number and links, up to this.
pub const PAGE_BYTES: usize = 8192;

/// Bytes of an entry besides the page.
const LINKS: usize = 56;
const _: () = assert!(size_of::<Page>() + LINKS <= PAGE_BYTES);

/// The kernel fills its stock while it answers a request for a page of memory, so that the second one finds some.
const TRIES: usize = 3;

/// The table of pages.
pub(crate) struct Pages {
    map: MapHandle,
}

impl Pages {
    pub(crate) fn over(map: MapHandle) -> io::Result<Self> {
        if map.value_size() as usize != size_of::<Page>() {
            return Err(io::Error::other("pages have another size than expected"));
        }
        Ok(Self { map })
    }

    /// The numbers of pages end before this one; 0 is not used.
    pub(crate) fn len(&self) -> u32 {
        self.map.max_entries()
    }

    /// Fills a page that no slot leads to with as many of the `bytes` as it holds, and zeros behind them. False: the kernel
    /// has no memory for it now.
    ///
    /// # Errors
    ///
    /// The errors of the system call.
    pub(crate) fn write(&self, index: u32, bytes: &[u8]) -> libbpf_rs::Result<bool> {
        assert!(index != 0 && index < self.len(), "page {index} of {}", self.len());
        let mut page = Page::ZERO;
        let count = bytes.len().min(page.bytes.len());
        page.bytes[..count].copy_from_slice(&bytes[..count]);
        for _ in 0..TRIES {
            match self.map.update(&index.to_ne_bytes(), &page.to_bytes(), MapFlags::ANY) {
                Err(error) if error.kind() == libbpf_rs::ErrorKind::OutOfMemory => {}
                other => return other.map(|()| true),
            }
        }
        Ok(false)
    }

    /// Gives the memory of a page that no slot leads to back. A program that is at work with it notices that the version of
    /// its slot has changed.
    pub(crate) fn give_back(&self, index: u32) {
        // A page that has none, because it was never written, is as good.
        let _ = self.map.delete(&index.to_ne_bytes());
    }

    /// Pages that have memory.
    pub(crate) fn held(&self) -> usize {
        self.map.keys().count()
    }

    /// Gives back what an earlier process left, except the pages that are in use.
    pub(crate) fn give_back_all_but(&self, is_used: impl Fn(u32) -> bool) {
        let numbers =
            self.map.keys().filter_map(|key| Some(u32::from_ne_bytes(key.try_into().ok()?)));
        let unused: Vec<u32> = numbers.filter(|number| !is_used(*number)).collect();
        unused.into_iter().for_each(|number| self.give_back(number));
    }
}
