//! Looking after answers of several segments when nothing arrives for them: lost tails, closed windows,
//! clients that have vanished.
//!
//! Acknowledgements drive them, and pay for no timer. Whoever calls [`FastPath::tend_flights`] is their clock.

use std::sync::atomic::Ordering;

use afpa_abi::{FlowKey, RtxDue, TRANSFERS_DUE};
use libbpf_rs::{MapCore, MapFlags};

use crate::load::FastPath;

/// Looks in a row, while each finds as many as it can name.
const ROUNDS: usize = 64;
const ETHERNET: usize = 14;
const IPV6: usize = 40;

/// What is known since the last look.
#[derive(Default)]
pub(crate) struct Tending {
    /// When the newest flight of those looked at began; 0: never looked.
    begun: u64,
    /// Some were on their way still.
    open: bool,
}

impl FastPath {
    /// Send what is due on answers of several segments, and end those whose client has vanished. Returns how
    /// many were looked after. To be called every ten milliseconds, in the network namespace of the
    /// interfaces; while nothing is on its way it costs a look at one word.
    pub fn tend_flights(&self) -> libbpf_rs::Result<usize> {
        let mut tending = self.tending.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let begun = self.region.transfer_ns().load(Ordering::SeqCst);
        if !tending.open && begun == tending.begun {
            return Ok(0);
        }
        let mut tended = 0;
        for _ in 0..ROUNDS {
            let found = crate::dry_run::run(&self.due, &[0; ETHERNET], 1)?.verdict as u32;
            let dues = (found & 0xff) as usize;
            tending.open = found >> 8 != 0;
            for index in 0..dues.min(TRANSFERS_DUE) as u32 {
                self.kick(index)?;
            }
            tended += dues;
            if dues < TRANSFERS_DUE {
                break;
            }
        }
        tending.begun = begun;
        Ok(tended)
    }

    /// For tests: all flights as if so much more time had gone by since anything was heard of them.
    #[doc(hidden)]
    pub fn age_transfers(&self, time: std::time::Duration) -> libbpf_rs::Result<()> {
        let engine = std::mem::offset_of!(afpa_abi::Transfer, sender);
        let keys: Vec<_> = self.transfers.keys().collect();
        for key in keys {
            let Some(mut flight) = self.transfers.lookup(&key, MapFlags::ANY)? else { continue };
            // `deadline`, `base` and `progress`, microseconds, stand first in `struct flight`.
            for word in flight[engine..engine + 24].chunks_exact_mut(8) {
                let at = word.try_into().map(u64::from_ne_bytes).unwrap_or_default();
                let earlier = at.saturating_sub(time.as_micros() as u64);
                word.copy_from_slice(&earlier.to_ne_bytes());
            }
            self.transfers.update(&key, &flight, MapFlags::ANY)?;
        }
        Ok(())
    }

    /// Send what the flight at this place of the list has to send.
    fn kick(&self, index: u32) -> libbpf_rs::Result<()> {
        let due = self.transfers_due.lookup(&index.to_ne_bytes(), MapFlags::ANY)?;
        let due: Option<[u8; size_of::<RtxDue>()]> = due.and_then(|due| due.try_into().ok());
        let Some(due) = due else { return Ok(()) };
        let (key, rest) = due.split_at(size_of::<FlowKey>());
        let (interface, rest) = rest.split_at(4);
        let interface = interface.try_into().map(u32::from_ne_bytes).unwrap_or_default();
        let mut frame = [&rest[..ETHERNET], key].concat();
        frame.resize(ETHERNET + IPV6, 0); // no shorter than what its Ethernet header announces
        // What an interface that is gone carried is given up when its socket is.
        crate::dry_run::run_from(&self.kick, &frame, interface)?;
        Ok(())
    }
}
