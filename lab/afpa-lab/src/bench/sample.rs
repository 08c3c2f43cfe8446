//! One measurement, and the figures that are taken from it.

use afpa_generator::Latency;
use serde::Serialize;

use crate::results::{Busy, Doubt};

/// One server, one case, one round.
#[derive(Debug, Clone, Serialize)]
pub struct Sample {
    /// Name of the case.
    pub case: String,
    /// Name of the server.
    pub server: String,
    /// Counted from 1.
    pub round: u32,
    /// Complete responses.
    pub requests: u64,
    /// Length of the measurement.
    pub seconds: f64,
    /// Bytes of content that arrived.
    pub body_bytes: f64,
    /// Seconds of core time that the requests cost: the server's core's, or, on beds where the work
    /// of both sides mixes, both sides'.
    pub core_seconds: f64,
    /// In microseconds.
    pub latency: Latency,
    /// Shares of the time in which cores were busy.
    pub busy: Busy,
    /// Why the figures are not the server's alone; empty when they are.
    pub doubts: Vec<Doubt>,
    /// Wrong answers, in words; a measurement that has some does not count.
    #[serde(skip)]
    pub errors: Option<String>,
}

/// A figure of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Requests a second by the clock.
    Requests,
    /// Requests per second in which the server's core was busy.
    RequestsPerCore,
    /// Bytes of content a second by the clock.
    Bytes,
    /// Bytes of content per second in which the server's core was busy.
    BytesPerCore,
    /// Core time of a request, in seconds.
    CoreTime,
    /// Median latency, in seconds.
    P50,
    /// 99th percentile of the latency, in seconds.
    P99,
    /// 99.9th percentile of the latency, in seconds.
    P999,
}

impl Metric {
    /// The figure of one sample.
    pub fn of(self, sample: &Sample) -> f64 {
        let requests = sample.requests as f64;
        match self {
            Self::Requests => requests / sample.seconds,
            Self::RequestsPerCore => requests / sample.core_seconds,
            Self::Bytes => sample.body_bytes / sample.seconds,
            Self::BytesPerCore => sample.body_bytes / sample.core_seconds,
            Self::CoreTime => sample.core_seconds / requests,
            Self::P50 => sample.latency.p50 / 1e6,
            Self::P99 => sample.latency.p99 / 1e6,
            Self::P999 => sample.latency.p999 / 1e6,
        }
    }

    /// For people.
    pub fn title(self) -> &'static str {
        match self {
            Self::Requests => "Requests per second",
            Self::RequestsPerCore => "Requests per second of busy server core",
            Self::Bytes => "Body bytes per second",
            Self::BytesPerCore => "Body bytes per second of busy server core",
            Self::CoreTime => "Server-core time of a request",
            Self::P50 => "Latency, median",
            Self::P99 => "Latency, 99th percentile",
            Self::P999 => "Latency, 99.9th percentile",
        }
    }

    /// For [`crate::units::number`].
    pub fn unit(self) -> &'static str {
        match self {
            Self::Requests | Self::RequestsPerCore => "/s",
            Self::Bytes | Self::BytesPerCore => "B/s",
            Self::CoreTime | Self::P50 | Self::P99 | Self::P999 => "s",
        }
    }

    /// Whether a larger figure is a better one.
    pub fn more_is_better(self) -> bool {
        matches!(self, Self::Requests | Self::RequestsPerCore | Self::Bytes | Self::BytesPerCore)
    }
}

impl Sample {
    /// Something other than the server decided this figure.
    pub fn is(&self, doubt: Doubt) -> bool {
        self.doubts.contains(&doubt)
    }

    /// The server's core was busy all the time, so that it was the bottleneck.
    pub fn is_saturated(&self) -> bool {
        !self.is(Doubt::ClientBound) && !self.is(Doubt::NotSaturated)
    }

    /// The sample in a few figures, for a line of progress.
    pub fn line(&self) -> String {
        let mut line = format!(
            "{:<15} {:>8.1} k/s  {:>7.2} us  p99 {:>6.0} us",
            self.server,
            Metric::Requests.of(self) / 1e3,
            Metric::CoreTime.of(self) * 1e6,
            self.latency.p99,
        );
        for doubt in &self.doubts {
            line += &format!("  ({})", doubt.words());
        }
        line
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A second in which `requests` were answered.
    pub(crate) fn sample(case: &str, server: &str, round: u32, requests: u64) -> Sample {
        Sample {
            case: case.into(),
            server: server.into(),
            round,
            requests,
            seconds: 1.0,
            body_bytes: 0.0,
            core_seconds: 1.0,
            latency: Latency { p50: 1.0, p99: 2.0, ..Latency::default() },
            busy: Busy::default(),
            doubts: Vec::new(),
            errors: None,
        }
    }

    #[test]
    fn bytes_per_core_use_busy_seconds_and_not_the_clock() {
        let one = Sample {
            body_bytes: 1000.0,
            core_seconds: 0.5,
            seconds: 4.0,
            ..sample("c", "s", 1, 1)
        };
        assert_eq!(Metric::BytesPerCore.of(&one), 2000.0);
        assert_eq!(Metric::Bytes.of(&one), 250.0);
    }

    #[test]
    fn core_time_and_requests_per_core_are_two_views_of_one_figure() {
        let one = Sample { core_seconds: 0.5, ..sample("c", "s", 1, 1_000_000) };
        assert_eq!(Metric::RequestsPerCore.of(&one), 2e6);
        assert_eq!(Metric::CoreTime.of(&one), 0.5e-6);
    }
}
