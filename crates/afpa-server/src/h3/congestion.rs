//! Congestion control: that of quinn-proto, without pacing on short paths.
//!
//! The transport paces by the measured round trip, in bursts of ten packets where that is long (RFC 9002 section 7.7). With many
//! requests at a time it is long because they wait for the core, and then each burst costs a call and a timer, which make it
//! longer still. Where the shortest round trip says that the client is in the same network, a burst that the window allows
//! overflows nothing on the way.

use std::any::Any;
use std::sync::Arc;
use std::time::{Duration, Instant};

use quinn_proto::RttEstimator;
use quinn_proto::congestion::{
    Controller, ControllerFactory, ControllerMetrics, Cubic, CubicConfig,
};

/// Paths whose shortest round trip takes less than this are not paced.
const SHORT: Duration = Duration::from_millis(1);

/// A path that has lost something is paced for so long.
const CAREFUL: Duration = Duration::from_secs(1);

/// The transport paces no window of this size.
const UNPACED: u64 = 1 << 32;

/// Makes the controllers of connections.
#[derive(Debug, Default)]
pub(super) struct Congestion(Arc<CubicConfig>);

impl ControllerFactory for Congestion {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        let inner = Cubic::new(Arc::clone(&self.0), now, current_mtu);
        Box::new(ShortPaths { inner, is_short: false, in_flight: 0, lost: None })
    }
}

/// CUBIC, whose window is not paced on a short path while half of it is free.
#[derive(Debug, Clone)]
struct ShortPaths {
    inner: Cubic,
    is_short: bool,
    /// Bytes in flight, as far as they are known here: those of the last acknowledgement, and all that were sent since.
    in_flight: u64,
    /// When something was lost.
    lost: Option<Instant>,
}

impl ShortPaths {
    /// An acknowledgement has come by a path with this shortest round trip.
    fn note(&mut self, now: Instant, shortest: Duration) {
        self.lost = self.lost.filter(|lost| now.saturating_duration_since(*lost) < CAREFUL);
        self.is_short = self.lost.is_none() && shortest < SHORT;
    }
}

/// Bytes that may be sent at once of a window that is not paced: half of the true one, which is free then.
pub(super) fn burst(controller: &dyn Controller) -> Option<u64> {
    let is_unpaced = controller.window() == UNPACED;
    is_unpaced.then(|| controller.metrics().congestion_window / 2)
}

impl Controller for ShortPaths {
    fn on_sent(&mut self, now: Instant, bytes: u64, last_packet_number: u64) {
        self.in_flight += bytes;
        self.inner.on_sent(now, bytes, last_packet_number);
    }

    fn on_ack(
        &mut self,
        now: Instant,
        sent: Instant,
        bytes: u64,
        app_limited: bool,
        rtt: &RttEstimator,
    ) {
        self.note(now, rtt.min());
        self.inner.on_ack(now, sent, bytes, app_limited, rtt);
    }

    fn on_end_acks(
        &mut self,
        now: Instant,
        in_flight: u64,
        app_limited: bool,
        largest_packet_num_acked: Option<u64>,
    ) {
        self.in_flight = in_flight;
        self.inner.on_end_acks(now, in_flight, app_limited, largest_packet_num_acked);
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        lost_bytes: u64,
    ) {
        (self.is_short, self.lost) = (false, Some(now));
        self.inner.on_congestion_event(now, sent, is_persistent_congestion, lost_bytes);
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.inner.on_mtu_update(new_mtu);
    }

    fn window(&self) -> u64 {
        let window = self.inner.window();
        match self.is_short && self.in_flight <= window / 2 {
            true => UNPACED,
            false => window,
        }
    }

    fn metrics(&self) -> ControllerMetrics {
        self.inner.metrics()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        // For another path, by which nothing was sent.
        Box::new(Self { is_short: false, in_flight: 0, ..self.clone() })
    }

    fn initial_window(&self) -> u64 {
        self.inner.initial_window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A controller of a path with this shortest round trip, and its true window.
    fn controller(shortest: Duration) -> (ShortPaths, u64) {
        let now = Instant::now();
        let inner = Cubic::new(Arc::default(), now, 1200);
        let window = inner.window();
        let mut made = ShortPaths { inner, is_short: false, in_flight: 0, lost: None };
        assert_eq!(made.window(), window, "nothing is known of the path");
        made.note(now, shortest);
        (made, window)
    }

    #[test]
    fn a_short_path_is_not_paced_while_half_of_its_window_is_free() {
        let (mut short, window) = controller(Duration::from_micros(200));
        assert_eq!(short.window(), UNPACED);
        assert_eq!(burst(&short), Some(window / 2));
        let now = Instant::now();
        short.on_sent(now, window / 2, 1);
        assert_eq!(short.window(), UNPACED);
        short.on_sent(now, window / 2, 2);
        assert_eq!((short.window(), burst(&short)), (window, None));
        short.on_end_acks(now, 0, false, Some(2));
        assert_eq!(short.window(), UNPACED);
        assert_eq!(short.clone_box().window(), window, "another path");
    }

    #[test]
    fn other_paths_are_paced_and_so_are_those_that_have_lost_something() {
        let (long, window) = controller(Duration::from_millis(20));
        assert_eq!((long.window(), burst(&long)), (window, None));
        let (mut short, window) = controller(Duration::from_micros(200));
        let now = Instant::now();
        short.on_congestion_event(now, now, false, 1200);
        assert!(short.window() < window, "{}", short.window());
        short.note(now + CAREFUL / 2, Duration::from_micros(200));
        assert!(short.window() < window);
        short.note(now + CAREFUL, Duration::from_micros(200));
        assert_eq!(short.window(), UNPACED);
    }
}
