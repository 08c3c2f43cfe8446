//! Looking after answers of one segment: see `bpf/include/afpa/rtx/watch.h`.
//!
//! The queue of those that may have been lost is the kernel's. Those that are due before they could wait in it
//! again wait here.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::mem::offset_of;
use std::sync::atomic::Ordering;

use afpa_abi::{Flow, RTX_DUE, RtxTimer};
use libbpf_rs::{MapCore, MapFlags};
use rustix::time::{ClockId, clock_gettime};

use crate::load::FastPath;

const ETHERNET: usize = 14;
/// Looks in a row, while there is more to be looked at: some two thousand connections.
const ROUNDS: usize = 8;
/// Answers that leave again at once: what is due beyond them waits for the next tick.
const REPETITIONS: usize = 256;
/// What `afpa_rtx_timer` says of the queue, from its ninth bit on.
const EMPTY: u32 = 0;
const GOES_ON: u32 = 2;

/// See `exhaust_retransmissions`.
const TRIES: u8 = 8;

type Entry = [u8; size_of::<RtxTimer>()];

/// What is known since the last look.
#[derive(Default)]
pub(crate) struct Watching {
    /// When the newest entry of those looked at was made; 0: never looked.
    begun: u64,
    /// There are entries in the queue still.
    open: bool,
    /// Those that were taken out of it, by when they are due.
    waiting: BinaryHeap<Reverse<(u64, Entry)>>,
}

impl FastPath {
    /// Send answers of one segment again that nobody acknowledges. Returns how many entries were looked after
    /// one by one. To be called as [`tend_flights`](Self::tend_flights).
    pub fn tend_watches(&self) -> libbpf_rs::Result<usize> {
        let mut watching = self.watching.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let begun = self.region.rtx_ns().load(Ordering::SeqCst);
        if watching.open || begun != watching.begun {
            self.take_out(&mut watching)?;
            watching.begun = begun;
        }
        let mut looked = 0;
        while looked < REPETITIONS
            && let Some(Reverse((due, entry))) = watching.waiting.peek().copied()
            && due <= now()
        {
            watching.waiting.pop();
            looked += 1;
            let wait = self.repeat(&entry)?;
            if wait > 0 {
                watching.waiting.push(Reverse((now() + u64::from(wait), entry)));
            }
        }
        Ok(looked)
    }

    /// For tests: every answer as if it had been sent again for the last time, a minute ago.
    #[doc(hidden)]
    pub fn exhaust_retransmissions(&self) -> libbpf_rs::Result<()> {
        let keys: Vec<_> = self.flows.keys().collect();
        for key in keys {
            let Some(mut flow) = self.flows.lookup(&key, MapFlags::ANY)? else { continue };
            flow[offset_of!(Flow, retransmits)] = TRIES;
            let answered = offset_of!(Flow, answer_sent);
            let earlier = (now() as u32).wrapping_sub(60_000);
            flow[answered..answered + 4].copy_from_slice(&earlier.to_ne_bytes());
            self.flows.update(&key, &flow, MapFlags::ANY)?;
        }
        Ok(())
    }

    /// Out of the queue what is due, as far as it is not back there.
    fn take_out(&self, watching: &mut Watching) -> libbpf_rs::Result<()> {
        for _ in 0..ROUNDS {
            let found = crate::dry_run::run(&self.watch, &[0; ETHERNET], 1)?.verdict as u32;
            watching.open = found >> 8 != EMPTY;
            for index in 0..(found & 0xff).min(RTX_DUE as u32) {
                let entry = self.rtx_due.lookup(&index.to_ne_bytes(), MapFlags::ANY)?;
                let entry: Option<Entry> = entry.and_then(|entry| entry.try_into().ok());
                let room = watching.waiting.len() < self.settings.rtx_timers as usize;
                // Whom there is no room for is entered anew with another answer.
                let Some(entry) = entry.filter(|_| room) else { continue };
                watching.waiting.push(Reverse((due(&entry), entry)));
            }
            if found >> 8 != GOES_ON {
                break;
            }
        }
        Ok(())
    }

    /// Send the connection's answer again, if that is due. When to look again, in the programs' unit; 0: no more.
    fn repeat(&self, entry: &Entry) -> libbpf_rs::Result<u32> {
        let interface = word(entry, offset_of!(RtxTimer, interface));
        let ethernet = offset_of!(RtxTimer, ethernet);
        let frame = [&entry[ethernet..ethernet + ETHERNET], &entry[..]].concat();
        let run = crate::dry_run::run_from(&self.repeat, &frame, interface)?;
        Ok(run.map_or(0, |run| run.verdict as u32))
    }
}

fn word(entry: &Entry, at: usize) -> u32 {
    entry[at..at + 4].try_into().map(u32::from_ne_bytes).unwrap_or_default()
}

/// Monotonic time in the programs' unit, 2^20 nanoseconds; they keep its lower half.
fn now() -> u64 {
    let now = clock_gettime(ClockId::MonotonicCoarse);
    (now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64) >> 20
}

fn due(entry: &Entry) -> u64 {
    let (now, due) = (now(), word(entry, offset_of!(RtxTimer, due)));
    now.saturating_add_signed(i64::from(due.wrapping_sub(now as u32) as i32))
}
