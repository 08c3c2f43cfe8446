//! Memory of the heap that was freed, and goes back to the kernel.

use std::fs;

/// Bytes that are resident and not in use: the search for what can be given back holds up other threads.
const WORTH_IT: u64 = 4 << 20;

/// The resident memory beside the memory in use, as it was when memory was given back last, or less.
///
/// glibc keeps what is freed, unless it lies at the end of the heap: after a peak of connections, or after the start, nearly
/// all of it. A peak may be over before anybody looks, so its trace counts: pages that stay.
#[derive(Debug, Default)]
pub struct Heap {
    /// `None`: nothing was given back yet.
    rest: Option<u64>,
}

impl Heap {
    /// Gives freed memory back if there may be some MiB of it. To be called now and then.
    pub fn give_back(&mut self) {
        let Some(unused) = unused() else { return };
        match self.rest {
            Some(rest) if unused < rest + WORTH_IT => self.rest = Some(rest.min(unused)),
            _ => {
                trim();
                self.rest = self::unused();
            }
        }
    }
}

/// Bytes of anonymous memory that are resident beside those of the heap in use. `None`: the system does not tell.
fn unused() -> Option<u64> {
    const PAGE: u64 = 4096;
    let text = fs::read_to_string("/proc/self/statm").ok()?;
    let mut pages = text.split_ascii_whitespace().skip(1).map(|pages| pages.parse().ok());
    let (resident, shared): (u64, u64) = (pages.next()??, pages.next()??);
    Some((resident.saturating_sub(shared) * PAGE).saturating_sub(in_use()))
}

/// Bytes of the heap that are in use.
#[cfg(all(target_env = "gnu", not(miri)))]
#[expect(unsafe_code, reason = "a function of the C library")]
fn in_use() -> u64 {
    // JUSTIFICATION: no crate has it. SAFETY: it has no arguments, and may be called by any thread at any time.
    unsafe { libc::mallinfo2() }.uordblks as u64
}

#[cfg(all(target_env = "gnu", not(miri)))]
#[expect(unsafe_code, reason = "a function of the C library")]
fn trim() {
    // JUSTIFICATION: as for `in_use`. SAFETY: it touches free memory only.
    let _whether_some = unsafe { libc::malloc_trim(0) };
}

/// Other allocators see to that themselves.
#[cfg(not(all(target_env = "gnu", not(miri))))]
fn in_use() -> u64 {
    0
}

#[cfg(not(all(target_env = "gnu", not(miri))))]
fn trim() {}

#[cfg(all(test, target_env = "gnu", not(miri)))]
mod tests {
    use super::*;

    /// The end of the heap is in use, so nothing is given back by itself.
    #[test]
    fn a_peak_that_was_over_before_anybody_looked_is_given_back() {
        let mut heap = Heap::default();
        heap.give_back();
        let before = unused().unwrap();
        let mut peak: Vec<Box<[u8]>> = (0..4096).map(|_| vec![1; 16 << 10].into()).collect();
        let last = peak.pop();
        drop(peak);
        assert!(unused().unwrap() > before + (32 << 20), "glibc keeps it");
        heap.give_back();
        assert!(unused().unwrap() < before + WORTH_IT);
        drop(last);
    }
}
