//! Counters of servers and groups, and the reports that metrics and statistics read.

mod histogram;

pub use histogram::{BOUNDS_US, BUCKETS, Histogram};

use crate::health::{AttemptOutcome, Change};
use crate::select::{ConnectionCounts, Http2Counts};

/// Counts of one server since the start, or since it joined its group.
#[derive(Clone, Debug, Default)]
pub struct ServerCounts {
    /// Requests given to it.
    pub requests: u64,
    /// Responses by the first digit of their status: 1xx to 5xx.
    pub responses: [u64; 5],
    /// Failures by kind, in the order of [`ERRORS`].
    pub errors: [u64; ERRORS.len()],
    /// Requests given up because the client went away.
    pub cancelled: u64,
    /// Microseconds from request to first byte.
    pub first_byte: Histogram,
    /// Microseconds from request to last byte.
    pub total: Histogram,
    /// Times it became unavailable.
    pub downs: u64,
    /// Times it became available again.
    pub ups: u64,
    /// The numbers of probes and checks that failed, and that succeeded.
    pub probes: [u64; 2],
}

/// Names of the kinds of failure.
pub const ERRORS: [&str; 9] = [
    "refused",
    "connect_failed",
    "connect_timeout",
    "first_byte_timeout",
    "idle_timeout",
    "reset",
    "bad_response",
    "truncated",
    "overloaded",
];

impl ServerCounts {
    /// Counts the outcome of an attempt.
    pub(crate) fn outcome(&mut self, outcome: AttemptOutcome) {
        let error = match outcome {
            AttemptOutcome::Ok { status, first_byte_us, total_us } => {
                let class = usize::from(status / 100).saturating_sub(1);
                if let Some(count) = self.responses.get_mut(class) {
                    *count += 1;
                }
                self.first_byte.add(first_byte_us);
                self.total.add(total_us);
                return;
            }
            AttemptOutcome::ConnectRefused => 0,
            AttemptOutcome::ConnectFailed => 1,
            AttemptOutcome::ConnectTimeout => 2,
            AttemptOutcome::FirstByteTimeout => 3,
            AttemptOutcome::IdleTimeout => 4,
            AttemptOutcome::Reset => 5,
            AttemptOutcome::BadResponse => 6,
            AttemptOutcome::Truncated => 7,
            AttemptOutcome::Overloaded => 8,
        };
        self.errors[error] += 1;
    }

    /// Counts a change of health.
    pub(crate) fn change(&mut self, change: Change) {
        match change {
            Change::Up => self.ups += 1,
            Change::Down(_) => self.downs += 1,
        }
    }

    /// Failures of all kinds.
    pub fn failed(&self) -> u64 {
        self.errors.iter().sum()
    }

    /// Responses of all statuses.
    pub fn answered(&self) -> u64 {
        self.responses.iter().sum()
    }
}

/// A server group at one moment.
#[derive(Clone, Debug)]
pub struct GroupReport {
    /// Its name.
    pub name: String,
    /// Its servers, in the order of the configuration.
    pub servers: Vec<ServerReport>,
    /// Requests that wait for a server now.
    pub waiting: usize,
    /// Requests that have waited.
    pub waited: u64,
    /// Requests refused because the queue was full.
    pub queue_full: u64,
    /// Requests refused because as many of their client waited as may.
    pub client_waits: u64,
    /// Requests refused because they would have waited too long.
    pub shed: u64,
    /// Requests that left the queue without a server: time-out, or the client went away.
    pub left_queue: u64,
    /// Requests refused because no server was available.
    pub all_down: u64,
}

/// A server at one moment.
#[derive(Clone, Debug)]
pub struct ServerReport {
    /// Its name: as it is configured, and its address if that differs.
    pub name: String,
    /// `up`, `growing`, `draining`, or why it is unavailable.
    pub state: &'static str,
    /// Whether requests go to it.
    pub available: bool,
    /// Its weight.
    pub weight: u32,
    /// Requests in flight.
    pub in_flight: u32,
    /// Most requests at a time.
    pub max_connections: u32,
    /// Its counters.
    pub counts: ServerCounts,
    /// Connections to it.
    pub connections: ConnectionCounts,
    /// The counts of HTTP/2.
    pub http2: Http2Counts,
}
