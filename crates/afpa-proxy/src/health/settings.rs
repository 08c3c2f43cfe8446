//! When a server counts as unavailable, and when it is used again.

use std::time::Duration;

/// The rules of a group's health. A [`Duration`] of zero switches off what it belongs to.
#[derive(Clone, Debug, PartialEq)]
pub struct HealthSettings {
    /// Refused connections in a row that mark a server unavailable; 1 to 100. The paper's is 1.
    pub refused: u32,
    /// Time-outs in a row, of the connection or the first byte, that do; 1 to 100. The paper's
    /// is 3.
    pub timeouts: u32,
    /// How often an unavailable server is probed; 100 ms to 1 h. The paper's is 10 s.
    pub probe_every: Duration,
    /// How long a probe or check may take; 10 ms to 1 min.
    pub probe_timeout: Duration,
    /// After a server was marked available again: how long its share of requests grows until it is
    /// whole; 0 (at once) to 1 h.
    pub slow_start: Duration,
    /// With every server unavailable, a request is tried on one of them after all, at most once in
    /// this time for each server; 0 (never) to 1 h.
    pub last_resort: Duration,
    /// Active checks.
    pub check: Option<CheckSettings>,
    /// Errors among the answers of a server.
    pub errors: ErrorSettings,
}

impl Default for HealthSettings {
    fn default() -> Self {
        Self {
            refused: 1,
            timeouts: 3,
            probe_every: Duration::from_secs(10),
            probe_timeout: Duration::from_secs(2),
            slow_start: Duration::ZERO,
            last_resort: Duration::from_secs(1),
            check: None,
            errors: ErrorSettings::default(),
        }
    }
}

/// An active check: every server is asked for a path now and again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckSettings {
    /// The path; begins with `/`, at most 1024 bytes that need no escape.
    pub path: String,
    /// The Host field; the server's address when empty.
    pub host: String,
    /// How often; 100 ms to 1 h.
    pub every: Duration,
    /// Status codes that are good: first and last.
    pub expect: (u16, u16),
    /// Checks in a row that must fail until the server is unavailable; 1 to 100.
    pub fall: u32,
    /// Checks in a row that must succeed until it is available again; 1 to 100.
    pub rise: u32,
}

impl Default for CheckSettings {
    fn default() -> Self {
        Self {
            path: "/".to_owned(),
            host: String::new(),
            every: Duration::from_secs(2),
            expect: (200, 399),
            fall: 3,
            rise: 2,
        }
    }
}

/// When a server is ejected because too many of its answers are errors: resets, cut or malformed
/// responses, and, if wanted, statuses of 500 and above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorSettings {
    /// Errors among a hundred answers from which it is; 0 (never) to 100.
    pub percent: u32,
    /// Answers that are looked at together, and how old they may be; 5 to 100000.
    pub requests: u32,
    /// How old they may be; 100 ms to 1 h.
    pub within: Duration,
    /// Whether statuses from 500 on count as errors.
    pub statuses: bool,
    /// How long it stays ejected the first time; the second time twice as long, and so on, up to
    /// ten times. 100 ms to 1 h.
    pub eject: Duration,
    /// At most so many of a hundred servers are ejected at a time, and never the last one: if most
    /// of them fail, the fault is not a server's, and the others would only fail under more load.
    pub most_ejected_percent: u32,
}

impl Default for ErrorSettings {
    fn default() -> Self {
        Self {
            percent: 50,
            requests: 20,
            within: Duration::from_secs(10),
            statuses: false,
            eject: Duration::from_secs(10),
            most_ejected_percent: 50,
        }
    }
}
