//! Memory of the heap that was freed, and goes back to the kernel.

/// Bytes by which the heap must have shrunk: the search for what can be given back holds up other threads.
const WORTH_IT: u32 = 4 << 20;

/// The size of the heap since memory was given back last.
///
/// glibc keeps what is freed, unless it lies at the end of the heap: after a peak of connections, or after the start, nearly
/// all of it.
#[derive(Debug, Default)]
pub struct Heap {
    /// The most bytes that were in use; `None`: nothing was given back yet.
    most: Option<u32>,
}

impl Heap {
    /// Gives freed memory back if there may be some MiB of it. To be called now and then.
    pub fn give_back(&mut self) {
        let used = in_use();
        let most = self.most.map_or(u32::MAX, |most| most.max(used));
        if most - used < WORTH_IT {
            self.most = Some(most);
            return;
        }
        self.most = Some(used);
        trim();
    }
}

/// Bytes of the heap that are in use. Beyond 4 GiB they begin at 0 again, which may give back more often.
#[cfg(all(target_env = "gnu", not(miri)))]
#[expect(unsafe_code, reason = "a function of the C library")]
fn in_use() -> u32 {
    // JUSTIFICATION: no crate has it. SAFETY: it has no arguments, and may be called by any thread at any time.
    unsafe { libc::mallinfo() }.uordblks.cast_unsigned()
}

#[cfg(all(target_env = "gnu", not(miri)))]
#[expect(unsafe_code, reason = "a function of the C library")]
fn trim() {
    // JUSTIFICATION: as for `in_use`. SAFETY: it touches free memory only.
    let _whether_some = unsafe { libc::malloc_trim(0) };
}

/// Other allocators see to that themselves.
#[cfg(not(all(target_env = "gnu", not(miri))))]
fn in_use() -> u32 {
    0
}

#[cfg(not(all(target_env = "gnu", not(miri))))]
fn trim() {}
