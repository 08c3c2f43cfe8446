//! Settings that decide when a server counts as unavailable, and when it is used again.

use std::time::Duration;

/// The rules for the health of a group's servers. A [`Duration`] of zero switches its rule off.
#[derive(Clone, Debug, PartialEq)]
pub struct HealthSettings {
    /// Refused connections in a row that mark a server unavailable; 1 to 100. The paper's is 1.
    pub refused: u32,
    /// Time-outs in a row, of the connection or the first byte, that mark it unavailable; 1 to 100. The
    /// paper's is 3.
    pub timeouts: u32,
    /// How often an unavailable server is probed; 100 ms to 1 h. The paper's is 10 s.
    pub probe_every: Duration,
    /// How long a probe or check may take; 10 ms to 1 min.
    pub probe_timeout: Duration,
    /// Slow start: how long the share of a server grows after it has become available again; 0 (it gets its
    /// whole share at once) to 1 h.
    pub slow_start: Duration,
    /// Last resort: while all servers are unavailable, each is tried with a request once in this time;
    /// 0 (never) to 1 h.
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
            // A request a second harms no server, and finds one that is back before the next probe.
            last_resort: Duration::from_secs(1),
            check: None,
            errors: ErrorSettings::default(),
        }
    }
}

/// An active check: a path that every server is asked for periodically.
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
    /// Percentage of errors from which it is ejected; 0 (never) to 100.
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
    /// Percentage of servers that may be ejected at a time; never the last one. If most servers fail, the cause
    /// is not a single server, and the others would only fail under more load.
    pub most_ejected_percent: u32,
}

impl Default for ErrorSettings {
    fn default() -> Self {
        Self {
            percent: 50,
            // Enough that one error is not a tenth of them, and few enough that a server with little to do is judged.
            requests: 20,
            within: Duration::from_secs(10),
            statuses: false,
            eject: Duration::from_secs(10),
            most_ejected_percent: 50,
        }
    }
}
