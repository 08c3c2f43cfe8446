//! The clients that may be answered at all: those that the firewall lets through, and none while answers are paused
//! (`bpf/include/afpa/conn/admit.h`).

use std::sync::atomic::Ordering;
use std::time::Duration;

use afpa_abi::TICK_SHIFT;

use crate::load::FastPath;
use crate::settings::Admission;

impl FastPath {
    /// Change [`Settings::firewall_interval`](crate::Settings::firewall_interval). Without effect where everybody is admitted.
    pub fn set_firewall_interval(&self, interval: Duration) {
        let interval = match self.settings.admission {
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
