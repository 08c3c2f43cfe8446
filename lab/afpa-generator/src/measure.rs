//! The settings and the results of a run.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

pub use afpa_netlab::load::Latency;
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// Complaints that are kept in words; all of them are counted.
const MOST_COMPLAINTS: usize = 5;

/// How hard, how long and over what kind of connections.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// Connections that are open at once.
    pub connections: u32,
    /// Load before the measurement.
    pub warm_up: Duration,
    /// Length of the measurement.
    pub duration: Duration,
    /// False: one request a connection, as in the papers.
    pub persistent: bool,
    /// Requests per second that arrive whether or not the server keeps up (open loop); `None`: the
    /// next request follows the last response (closed loop).
    pub rate: Option<f64>,
}

/// Where the load is made, and where it goes.
#[derive(Debug, Clone)]
pub struct ClientSetup {
    /// The server.
    pub to: SocketAddr,
    /// The client's interface.
    pub interface: String,
    /// First of `sources` consecutive client addresses.
    pub first_source: IpAddr,
    /// Client addresses in use.
    pub sources: u32,
    /// The core that the generator has to itself.
    pub core: usize,
    /// Packets are processed where they are sent: a generator in softirq has its next request at the
    /// server before the server's write returns.
    pub answers_at_once: bool,
    /// The server's answers have an Age, which gets longer.
    pub ages: bool,
}

/// The results of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Length of the interval.
    pub seconds: f64,
    /// Complete responses in it; wrong ones are not among them.
    pub requests: u64,
    /// Connections that were opened in it.
    pub connections_opened: u64,
    /// Bytes received, heads included.
    pub bytes: u64,
    /// Bytes of content received; 0 where the generator cannot tell them apart.
    pub body_bytes: u64,
    /// Wrong status, length or content, responses cut short or never given. 0 in a valid run.
    pub errors: u64,
    /// The first few errors, in words.
    pub complaints: Vec<String>,
    /// From the time a request should have been sent (open loop) or was sent (closed loop), or its
    /// connection begun (not persistent), to its last byte.
    pub latency: Latency,
    /// Open loop: the same from the time it really was sent, without the wait for a connection.
    pub service: Option<Latency>,
    /// Other counts, by name.
    pub counts: BTreeMap<String, u64>,
}

impl Measured {
    /// Complete responses per second.
    pub fn requests_per_second(&self) -> f64 {
        if self.seconds > 0.0 { self.requests as f64 / self.seconds } else { 0.0 }
    }

    /// Counts an error; the first few are kept in words.
    pub(crate) fn complain(&mut self, words: impl FnOnce() -> String) {
        self.errors += 1;
        if self.complaints.len() < MOST_COMPLAINTS {
            self.complaints.push(words());
        }
    }
}

/// The latencies of a histogram of nanoseconds; zeros when it is empty.
pub(crate) fn latency_of(histogram: &Histogram<u64>) -> Latency {
    if histogram.is_empty() {
        return Latency::default();
    }
    let at = |quantile: f64| histogram.value_at_quantile(quantile) as f64 / 1e3;
    Latency {
        mean: histogram.mean() / 1e3,
        p50: at(0.5),
        p90: at(0.9),
        p99: at(0.99),
        p999: at(0.999),
        max: histogram.max() as f64 / 1e3,
    }
}

/// How far generators agree on one server: each one's requests/s beside the fastest's, in the
/// order given. A generator that is slower than another is its own bottleneck, not the server.
pub fn agreement(measured: &[(&str, &Measured)]) -> Vec<(String, f64)> {
    let rates = measured.iter().map(|(_, measured)| measured.requests_per_second());
    let fastest = rates.fold(0.0, f64::max);
    let share = |measured: &Measured| match fastest {
        0.0 => 0.0,
        fastest => measured.requests_per_second() / fastest,
    };
    measured.iter().map(|(name, measured)| ((*name).to_owned(), share(measured))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_are_microseconds() {
        let mut histogram = Histogram::<u64>::new(3).unwrap();
        assert_eq!(latency_of(&histogram), Latency::default());
        histogram.record_n(50_000, 99).unwrap();
        histogram.record(2_000_000).unwrap();
        let latency = latency_of(&histogram);
        assert!((latency.p50 - 50.0).abs() < 0.1, "{latency:?}");
        assert!((latency.mean - 69.5).abs() < 0.2, "{latency:?}");
        assert!((latency.max - 2000.0).abs() < 2.0, "{latency:?}");
    }

    #[test]
    fn agreement_is_relative_to_the_fastest() {
        let at = |requests| Measured { requests, seconds: 2.0, ..Measured::default() };
        let (one, other) = (at(100), at(80));
        let found = agreement(&[("wrk", &other), ("tc", &one)]);
        assert_eq!(found, [("wrk".to_owned(), 0.8), ("tc".to_owned(), 1.0)]);
        assert_eq!(agreement(&[("wrk", &at(0))]), [("wrk".to_owned(), 0.0)]);
    }

    #[test]
    fn only_the_first_errors_are_kept_in_words() {
        let mut measured = Measured::default();
        (0..100).for_each(|number| measured.complain(|| format!("error {number}")));
        assert_eq!((measured.errors, measured.complaints.len()), (100, MOST_COMPLAINTS));
    }
}
