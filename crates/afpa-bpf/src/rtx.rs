//! The driver of rtx timers: answers that the client does not acknowledge are retransmitted in time.
//!
//! The timers are the kernel's (`bpf/include/afpa/rtx/timers.h`), and so is the work (`rtx_timer.bpf.c`). No answer
//! pays for a kernel timer; the caller of [`Rtx::service_timers`] is their clock. Timers of answers of one
//! segment that expire soon wait here until they do.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::mem::offset_of;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use afpa_abi::{RTX_DUE, RtxTimer, rtx_kind, rtx_kinds, rtx_state};
use libbpf_rs::{MapCore, MapFlags, MapHandle};

use crate::programs::Programs;
use crate::region::Region;
use crate::settings::Settings;
use crate::time::ticks;
use crate::unavailable::Unavailable;

/// No time-out of an answer is shorter.
const TICK: Duration = Duration::from_millis(10);
const ETHERNET: usize = 14;
/// Runs in a tick while more transfers are due than one names.
const TRANSFER_ROUNDS: usize = 64;
/// Runs in a tick while more answers of one segment are due: some two thousand connections.
const ANSWER_ROUNDS: usize = 8;
/// Answers of one segment that are serviced in a tick; those due beyond them wait for the next.
const ANSWERS: usize = 256;

type Entry = [u8; size_of::<RtxTimer>()];

/// The state that is kept from tick to tick.
#[derive(Debug, Default)]
struct Timers {
    transfers: Armed,
    answers: Armed,
    /// Timers of answers that came out of the FIFO, by when they are due.
    waiting: BinaryHeap<Reverse<(u64, Entry)>>,
}

/// Is there anything to look for?
#[derive(Debug, Default)]
struct Armed {
    /// When the newest timer was armed that was looked for; 0: never looked.
    newest: u64,
    /// Some timers were left.
    left: bool,
}

impl Armed {
    /// Some are left, or `armed` has moved. The word is read before the timers, so none is missed.
    fn look(&mut self, armed: &AtomicU64) -> bool {
        let newest = armed.load(Ordering::SeqCst);
        self.left |= newest != self.newest; // until the program says otherwise
        self.newest = newest;
        self.left
    }
}

/// Answers that are retransmitted in time.
pub struct Rtx {
    region: Arc<Region>,
    /// None: they are sent again when the client asks again.
    programs: Option<RtxPrograms>,
    due: MapHandle,
    timers: Mutex<Timers>,
    /// Timers that may wait here.
    most: usize,
}

/// The programs that retransmit.
pub(crate) struct RtxPrograms {
    due: OwnedFd,
    timer: OwnedFd,
}

impl RtxPrograms {
    pub(crate) fn take(programs: &Programs) -> Result<Self, Unavailable> {
        let (due, timer) = (programs.program("afpa_rtx_due")?, programs.program("afpa_rtx_timer")?);
        Ok(Self { due, timer })
    }
}

impl Rtx {
    pub(crate) fn over(
        all: &Programs,
        region: &Arc<Region>,
        programs: Option<RtxPrograms>,
        settings: &Settings,
    ) -> Result<Self, Unavailable> {
        Ok(Self {
            region: Arc::clone(region),
            programs,
            due: all.map("rtx_due")?,
            timers: Mutex::default(),
            most: settings.rtx_timers as usize,
        })
    }

    /// Service all rtx timers that are due: retransmit, ask about closed windows, reset connections whose client has
    /// vanished. Returns how many were serviced. To be called every ten milliseconds, in the network namespace of
    /// the interfaces; an [`RtxThread`] does. While nothing is on its way it costs a look at two words.
    pub fn service_timers(&self) -> libbpf_rs::Result<usize> {
        let Some(programs) = &self.programs else { return Ok(0) };
        let mut timers = self.timers.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let mut serviced = self.service_due(programs, &mut timers)?;
        let last = serviced + ANSWERS;
        while serviced < last
            && let Some(Reverse((due, entry))) = timers.waiting.peek().copied()
            && due <= ticks()
        {
            timers.waiting.pop();
            serviced += 1;
            let wait = self.service(programs, &entry)?;
            if wait > 0 {
                timers.waiting.push(Reverse((ticks() + u64::from(wait), entry)));
            }
        }
        Ok(serviced)
    }

    /// Finds the timers that are due. Timers of transfers are serviced at once, those of answers wait for their time.
    fn service_due(&self, programs: &RtxPrograms, timers: &mut Timers) -> libbpf_rs::Result<usize> {
        let mut transfers = timers.transfers.look(self.region.transfer_ns());
        let mut answers = timers.answers.look(self.region.rtx_ns());
        let mut serviced = 0;
        for round in 0..TRANSFER_ROUNDS {
            let kinds = [(transfers, rtx_kinds::TRANSFERS), (answers, rtx_kinds::ANSWERS)];
            let kinds =
                kinds.iter().filter(|(wanted, _)| *wanted).fold(0, |all, (_, kind)| all | kind);
            if kinds == 0 {
                break;
            }
            let mut input = [0; ETHERNET];
            input[0] = kinds;
            let found = crate::dry_run::run(&programs.due, &input, 1)?.verdict as u32;
            let state = (found >> 8) as u8;
            if transfers {
                timers.transfers.left = state & rtx_state::TRANSFERS_LEFT != 0;
            }
            if answers {
                timers.answers.left = state & rtx_state::ANSWERS_LEFT != 0;
            }
            serviced += self.take_named(programs, timers, found & 0xff)?;
            transfers = state & rtx_state::TRANSFERS_MORE != 0;
            answers = state & rtx_state::ANSWERS_MORE != 0 && round + 1 < ANSWER_ROUNDS;
        }
        Ok(serviced)
    }

    /// The timers that were named last. Returns how many were serviced.
    fn take_named(
        &self,
        programs: &RtxPrograms,
        timers: &mut Timers,
        named: u32,
    ) -> libbpf_rs::Result<usize> {
        let mut serviced = 0;
        for index in 0..named.min(RTX_DUE as u32) {
            let entry = self.due.lookup(&index.to_ne_bytes(), MapFlags::ANY)?;
            let entry: Option<Entry> = entry.and_then(|entry| entry.try_into().ok());
            let Some(entry) = entry else { continue };
            if entry[offset_of!(RtxTimer, kind)] == rtx_kind::TRANSFER {
                self.service(programs, &entry)?;
                serviced += 1;
            } else if timers.waiting.len() < self.most {
                timers.waiting.push(Reverse((due(&entry), entry)));
            } // else the connection gets another timer with another answer
        }
        Ok(serviced)
    }

    /// Service one timer. When to service it again, in the programs' unit; 0: no more.
    fn service(&self, programs: &RtxPrograms, entry: &Entry) -> libbpf_rs::Result<u32> {
        let interface = word(entry, offset_of!(RtxTimer, interface));
        let ethernet = offset_of!(RtxTimer, ethernet);
        let frame = [&entry[ethernet..ethernet + ETHERNET], &entry[..]].concat();
        // An answer whose interface is gone is given up together with its socket.
        let run = crate::dry_run::run_from(&programs.timer, &frame, interface)?;
        Ok(run.map_or(0, |run| run.verdict as u32))
    }
}

fn word(entry: &Entry, at: usize) -> u32 {
    entry[at..at + 4].try_into().map(u32::from_ne_bytes).unwrap_or_default()
}

fn due(entry: &Entry) -> u64 {
    let (now, due) = (ticks(), word(entry, offset_of!(RtxTimer, due)));
    now.saturating_add_signed(i64::from(due.wrapping_sub(now as u32) as i32))
}

/// A thread that services rtx timers until it is dropped.
#[derive(Debug)]
pub struct RtxThread {
    ending: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl RtxThread {
    /// Starts the thread. `service` calls [`Rtx::service_timers`]; `complain` gets the first of several errors in a
    /// row.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn start(
        service: impl Fn() -> libbpf_rs::Result<usize> + Send + 'static,
        complain: impl Fn(&libbpf_rs::Error) + Send + 'static,
    ) -> std::io::Result<Self> {
        let ending = Arc::<AtomicBool>::default();
        let asked = Arc::clone(&ending);
        let work = move || {
            let mut well = true;
            while !asked.load(Ordering::Acquire) {
                let outcome = service();
                outcome.as_ref().err().filter(|_| well).inspect(|error| complain(error));
                well = outcome.is_ok();
                std::thread::park_timeout(TICK);
            }
        };
        let thread = std::thread::Builder::new().name("afpa-rtx".to_owned()).spawn(work)?;
        Ok(Self { ending, thread: Some(thread) })
    }
}

impl Drop for RtxThread {
    fn drop(&mut self) {
        self.ending.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A panic has been printed.
            let _ = thread.join();
        }
    }
}
