//! Round trips: their estimate, and the time-outs made of it (RFC 6298, RFC 8985).

use crate::Micros;

/// No time-out is shorter; the kernel's TCP has the same floor.
const RTO_MIN: u32 = 200_000;
const RTO_MAX: u32 = 60_000_000;
/// Before the first measurement (RFC 6298, 2.1).
const RTO_FIRST: u32 = 1_000_000;
/// How long a receiver may keep back an acknowledgement (RFC 8985, 7.2).
const DELAYED_ACK: u32 = 200_000;
const PROBE_MIN: u32 = 10_000;

/// What is known of a path's round trip, microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rtt {
    /// Smoothed; 0 before the first measurement.
    pub smoothed: u32,
    /// Mean deviation.
    pub variation: u32,
    /// The shortest seen; 0 before the first.
    pub shortest: u32,
}

impl Rtt {
    /// Takes a measurement in (RFC 6298, section 2).
    pub fn measured(&mut self, sample: u32) {
        let sample = sample.clamp(1, RTO_MAX);
        if self.smoothed == 0 {
            self.smoothed = sample;
            self.variation = sample / 2;
            self.shortest = sample;
            return;
        }
        let difference = self.smoothed.abs_diff(sample);
        self.variation = self.variation - self.variation / 4 + difference / 4;
        self.smoothed = (self.smoothed - self.smoothed / 8 + sample / 8).max(1);
        self.shortest = self.shortest.min(sample);
    }

    /// Retransmission time-out after `backoff` ones in a row.
    pub fn time_out(&self, backoff: u8) -> Micros {
        let first = match self.smoothed {
            0 => RTO_FIRST,
            smoothed => smoothed.saturating_add(self.variation.saturating_mul(4).max(RTO_MIN)),
        };
        let doubled = u64::from(first) << backoff.min(16);
        doubled.min(u64::from(RTO_MAX))
    }

    /// Probe time-out (RFC 8985, 7.2): when to send the tail again, hoping for one acknowledgement.
    pub fn probe_out(&self, outstanding: u16) -> Micros {
        let wait = match self.smoothed {
            0 => RTO_FIRST,
            smoothed => (2 * smoothed).max(PROBE_MIN),
        };
        let kept_back = if outstanding == 1 { DELAYED_ACK } else { 0 };
        u64::from(wait.saturating_add(kept_back)).min(self.time_out(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_estimate_follows_what_is_measured() {
        let mut rtt = Rtt::default();
        assert_eq!(rtt.time_out(0), 1_000_000);
        rtt.measured(40_000);
        assert_eq!((rtt.smoothed, rtt.variation, rtt.shortest), (40_000, 20_000, 40_000));
        for _ in 0..100 {
            rtt.measured(80_000);
        }
        assert!(rtt.smoothed.abs_diff(80_000) < 100, "{rtt:?}");
        assert_eq!(rtt.shortest, 40_000);
        assert!(rtt.time_out(0) >= 280_000 - 100, "the floor stands on the estimate");
    }

    #[test]
    fn time_outs_double_up_to_a_minute() {
        let mut rtt = Rtt::default();
        rtt.measured(100_000);
        assert_eq!(rtt.time_out(1), 2 * rtt.time_out(0));
        assert_eq!(rtt.time_out(40), 60_000_000);
        assert!(rtt.probe_out(5) <= rtt.time_out(0));
        assert!(rtt.probe_out(1) > rtt.probe_out(5), "one segment may wait for a delayed ACK");
    }
}
