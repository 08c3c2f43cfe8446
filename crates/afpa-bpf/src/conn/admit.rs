//! The clients that may be answered at all: those that the firewall lets through, and none while answers are paused
//! (`bpf/include/afpa/conn/admit.h`).

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use afpa_abi::{FLOOD_SHIFT, TICK_SHIFT};

use crate::programs::Programs;
use crate::region::{Region, Words};
use crate::settings::Admission;
use crate::unavailable::Unavailable;

/// The clients that are answered, and how many connections each has.
pub struct Clients {
    pub(super) region: Arc<Region>,
    /// The clients whose connections may begin without a socket.
    admission: Admission,
    /// How many connections without a socket each has.
    pub(super) connections: Words,
}

impl Clients {
    pub(crate) fn over(
        programs: &Programs,
        region: &Arc<Region>,
        admission: Admission,
    ) -> Result<Self, Unavailable> {
        let connections = programs.words("client_connections", size_of::<u64>())?;
        Ok(Self { region: Arc::clone(region), admission, connections })
    }

    /// Change [`Settings::firewall_interval`](crate::Settings::firewall_interval). Without effect where everybody is admitted.
    pub fn set_firewall_interval(&self, interval: Duration) {
        let interval = match self.admission {
            Admission::Recent => interval,
            // Clients admitted in a flood have not been through the firewall: each takes its path at least once.
            Admission::Flood if interval.is_zero() => Duration::MAX,
            Admission::Flood => interval,
            Admission::Everyone => Duration::ZERO,
        };
        let units = interval.as_nanos() >> TICK_SHIFT;
        let units = u32::try_from(units).unwrap_or(u32::MAX).min(u32::MAX >> 2);
        let units = if interval.is_zero() { 0 } else { units.max(4) };
        self.region.firewall_interval().store(units, Ordering::Relaxed);
    }

    /// Change [`Settings::flood_syns`](crate::Settings::flood_syns). Without effect unless floods are answered.
    pub fn set_flood_syns(&self, per_second: u32) {
        let window = match self.admission {
            Admission::Flood => in_a_window(per_second),
            Admission::Recent | Admission::Everyone => 0,
        };
        self.region.flood_syns().store(window, Ordering::SeqCst);
    }

    /// Pauses or resumes answers. While they are paused, nothing new is answered, heartbeat or not; connections with a
    /// sequence offset are translated, and answers under way come to their end. Outlives the process where connections
    /// do.
    pub fn set_paused(&self, paused: bool) {
        self.region.paused().store(paused.into(), Ordering::SeqCst);
    }

    /// See [`set_paused`](Self::set_paused).
    pub fn is_paused(&self) -> bool {
        self.region.paused().load(Ordering::SeqCst) != 0
    }
}

/// How many SYNs that is in the time for which they are counted. Pure.
fn in_a_window(per_second: u32) -> u32 {
    let window = (u64::from(per_second) << FLOOD_SHIFT) / 1_000_000_000;
    u32::try_from(window).unwrap_or(u32::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::FLOOD_SYNS;

    #[test]
    fn a_rate_is_counted_in_windows_and_never_becomes_none() {
        assert_eq!(in_a_window(FLOOD_SYNS), 1342);
        assert_eq!(in_a_window(1), 1, "0 would mean that there are no floods");
        assert_eq!(in_a_window(u32::MAX), 576_460_752);
    }
}
