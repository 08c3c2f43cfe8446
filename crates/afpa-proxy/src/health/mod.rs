//! The health of a server: available, unavailable, or in slow start. This is pure: events and their times are
//! passed in.
//!
//! ```text
//!            refused / 3 time-outs in a row / checks fail / too many errors
//!        +----------------------------------------------------------------+
//!        |                                                                v
//!   AVAILABLE <--- whole share --- SLOW START <--- probe succeeds --- UNAVAILABLE
//!        ^                                                                |
//!        +------------------ probe succeeds, no slow start ---------------+
//! ```
//!
//! The rules are those of the IBM paper (section 3), and its numbers are the defaults. A refused connection
//! shows that the server's software is not running, and marks the server unavailable at once. A time-out is
//! ambiguous: the server may be overloaded, and to take it out would only load the others more. So it takes
//! three time-outs in a row. An unavailable server is probed every ten seconds.
//!
//! One addition: a server that accepted connections and did not answer is probed with a request, because the
//! kernel of a frozen server still accepts connections.

mod settings;
mod window;

use std::time::Duration;

pub use settings::{CheckSettings, ErrorSettings, HealthSettings};
use window::Window;

/// The outcome of an attempt to have a server answer a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptOutcome {
    /// A whole response.
    Ok {
        /// Its status code.
        status: u16,
        /// Microseconds from sending the request to the first byte of the response.
        first_byte_us: u32,
        /// Microseconds from sending the request to the last byte of the response.
        total_us: u32,
    },
    /// The connection was refused.
    ConnectRefused,
    /// No connection, for another reason that is not ambiguous: no route, no such socket.
    ConnectFailed,
    /// The server works, and has no room: its queue of connections is full, or it says that it is overloaded. It has not
    /// looked at the request.
    Overloaded,
    /// No answer to the connection attempt.
    ConnectTimeout,
    /// No response began in time.
    FirstByteTimeout,
    /// A response stalled.
    IdleTimeout,
    /// The server ended the connection before a response began.
    Reset,
    /// The response was malformed.
    BadResponse,
    /// A response was cut off.
    Truncated,
}

/// Why a server is unavailable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WhyDown {
    /// It refuses connections, or cannot be reached.
    Refused,
    /// It does not take connections in time.
    ConnectTimeout,
    /// It takes connections and does not answer in time.
    FirstByteTimeout,
    /// Its active checks fail.
    Check,
    /// Too many of its answers were errors.
    Errors,
}

impl WhyDown {
    /// A few words, for logs and tables.
    pub const fn text(self) -> &'static str {
        match self {
            WhyDown::Refused => "refused",
            WhyDown::ConnectTimeout => "connect time-out",
            WhyDown::FirstByteTimeout => "no answer",
            WhyDown::Check => "check failed",
            WhyDown::Errors => "errors",
        }
    }
}

/// A server became available or unavailable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Requests go to it again.
    Up,
    /// Requests go to it no longer.
    Down(WhyDown),
}

/// The kind of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeKind {
    /// It connects, as in the paper.
    Connect,
    /// It sends a request, and any response is good: the server had accepted connections without answering.
    Answer,
    /// It requests the path of the active check, and wants one of the check's statuses.
    Check,
}

#[derive(Clone, Copy, Debug)]
enum HealthState {
    Up {
        since_ms: u64,
        growing: bool,
    },
    Down {
        why: WhyDown,
        /// Before this time no probe brings it back.
        until_ms: u64,
        /// When a request was last let through as a last resort.
        tried_ms: u64,
    },
}

/// The life of one server.
#[derive(Clone, Debug)]
pub struct Life {
    state: HealthState,
    /// Number of changes so far. The outcome of an attempt that began before the latest change is ignored.
    epoch: u32,
    refused: u32,
    timeouts: u32,
    /// Checks in a row that contradicted the state.
    contrary: u32,
    window: Window,
    ejections: u32,
    next_probe_ms: u64,
    /// A probe is under way; it is forgotten at this time if its result is not reported.
    probing_until_ms: Option<u64>,
}

impl Life {
    /// A new server, which counts as available.
    pub fn new(now_ms: u64) -> Self {
        Self {
            state: HealthState::Up { since_ms: now_ms, growing: false },
            epoch: 0,
            refused: 0,
            timeouts: 0,
            contrary: 0,
            window: Window::default(),
            ejections: 0,
            next_probe_ms: now_ms,
            probing_until_ms: None,
        }
    }

    /// Whether requests may go to it.
    pub fn is_up(&self) -> bool {
        matches!(self.state, HealthState::Up { .. })
    }

    /// Why they may not; `None` if they may.
    pub fn why_down(&self) -> Option<WhyDown> {
        match self.state {
            HealthState::Up { .. } => None,
            HealthState::Down { why, .. } => Some(why),
        }
    }

    /// Number of changes so far. An attempt or probe that begins now is reported with it.
    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    /// How much of its weight counts, per mille: this grows during slow start.
    pub fn share(&self, now_ms: u64, settings: &HealthSettings) -> u32 {
        match self.state {
            HealthState::Up { since_ms, growing: true } => {
                let whole = millis(settings.slow_start).max(1);
                let passed = now_ms.saturating_sub(since_ms).min(whole);
                (passed.saturating_mul(1000) / whole).max(1) as u32
            }
            HealthState::Up { .. } => 1000,
            HealthState::Down { .. } => 0,
        }
    }

    /// A request that was given to it under `epoch` has ended. `may_eject` says whether the group can do
    /// without this server if too many of its answers are errors.
    pub fn outcome(
        &mut self,
        now_ms: u64,
        epoch: u32,
        outcome: AttemptOutcome,
        settings: &HealthSettings,
        may_eject: bool,
    ) -> Option<Change> {
        if epoch != self.epoch {
            return None;
        }
        if !self.is_up() {
            // This was a last resort: any response shows that the server is back.
            return match outcome {
                AttemptOutcome::Ok { .. } => Some(self.restore(now_ms, settings)),
                _ => None,
            };
        }
        match outcome {
            AttemptOutcome::ConnectRefused | AttemptOutcome::ConnectFailed => {
                self.refused += 1;
                (self.refused >= settings.refused)
                    .then(|| self.mark_down(now_ms, WhyDown::Refused, settings))
            }
            // Another one may have room, but this one is not out of order.
            AttemptOutcome::Overloaded => None,
            AttemptOutcome::ConnectTimeout => {
                self.timed_out(now_ms, WhyDown::ConnectTimeout, settings)
            }
            AttemptOutcome::FirstByteTimeout => {
                self.timed_out(now_ms, WhyDown::FirstByteTimeout, settings)
            }
            AttemptOutcome::Ok { status, .. } => {
                self.refused = 0;
                self.timeouts = 0;
                let error = settings.errors.statuses && status >= 500;
                self.answered(now_ms, error, settings, may_eject)
            }
            AttemptOutcome::IdleTimeout
            | AttemptOutcome::Reset
            | AttemptOutcome::BadResponse
            | AttemptOutcome::Truncated => {
                self.refused = 0;
                self.answered(now_ms, true, settings, may_eject)
            }
        }
    }

    /// Whether the next answer may complete a window of answers, at the end of which errors may take the
    /// server out; otherwise `may_eject` does not matter.
    pub fn is_judged_next(&self, settings: &HealthSettings) -> bool {
        settings.errors.percent > 0 && self.window.is_complete_with_next(settings.errors.requests)
    }

    /// The probe that is due, if any; it must be answered with [`Life::probed`].
    pub fn begin_probe(&mut self, now_ms: u64, settings: &HealthSettings) -> Option<ProbeKind> {
        let due = self.next_probe(settings).is_some_and(|due| due <= now_ms);
        if !due {
            return None;
        }
        let longest = settings.probe_timeout + FORGOTTEN;
        self.probing_until_ms = Some(now_ms.saturating_add(millis(longest)));
        Some(match (&settings.check, self.why_down()) {
            (Some(_), _) => ProbeKind::Check,
            (None, Some(WhyDown::FirstByteTimeout | WhyDown::Errors)) => ProbeKind::Answer,
            (None, _) => ProbeKind::Connect,
        })
    }

    /// When the next probe is due; `None` while the server needs none. While a probe is under way, none is
    /// due until that has a result or is forgotten.
    pub fn next_probe(&self, settings: &HealthSettings) -> Option<u64> {
        let due = match self.state {
            HealthState::Down { until_ms, .. } => self.next_probe_ms.max(until_ms),
            HealthState::Up { .. } => settings.check.as_ref().map(|_| self.next_probe_ms)?,
        };
        Some(self.probing_until_ms.map_or(due, |until| due.max(until)))
    }

    /// Reports the result of the probe that began under `epoch`.
    pub fn probed(
        &mut self,
        now_ms: u64,
        epoch: u32,
        good: bool,
        settings: &HealthSettings,
    ) -> Option<Change> {
        self.probing_until_ms = None;
        let every = settings.check.as_ref().map_or(settings.probe_every, |check| check.every);
        self.next_probe_ms = now_ms.saturating_add(millis(every));
        if epoch != self.epoch || good == self.is_up() {
            self.contrary = 0;
            return None;
        }
        self.contrary += 1;
        let (fall, rise) = settings.check.as_ref().map_or((1, 1), |check| (check.fall, check.rise));
        match self.is_up() {
            true if self.contrary >= fall => Some(self.mark_down(now_ms, WhyDown::Check, settings)),
            false if self.contrary >= rise => Some(self.restore(now_ms, settings)),
            _ => None,
        }
    }

    /// Whether one request may be tried as a last resort, because every other server is unavailable, too.
    pub fn last_resort(&mut self, now_ms: u64, settings: &HealthSettings) -> bool {
        let pause = millis(settings.last_resort);
        match &mut self.state {
            HealthState::Down { tried_ms, .. }
                if pause > 0 && now_ms.saturating_sub(*tried_ms) >= pause =>
            {
                *tried_ms = now_ms;
                true
            }
            _ => false,
        }
    }

    fn timed_out(
        &mut self,
        now_ms: u64,
        why: WhyDown,
        settings: &HealthSettings,
    ) -> Option<Change> {
        self.timeouts += 1;
        (self.timeouts >= settings.timeouts).then(|| self.mark_down(now_ms, why, settings))
    }

    fn answered(
        &mut self,
        now_ms: u64,
        error: bool,
        settings: &HealthSettings,
        may_eject: bool,
    ) -> Option<Change> {
        let errors = &settings.errors;
        if errors.percent == 0 {
            return None;
        }
        let percent = self.window.count(now_ms, error, errors.requests, millis(errors.within))?;
        if percent < errors.percent {
            self.ejections = self.ejections.saturating_sub(1);
            return None;
        }
        may_eject.then(|| self.mark_down(now_ms, WhyDown::Errors, settings))
    }

    fn mark_down(&mut self, now_ms: u64, why: WhyDown, settings: &HealthSettings) -> Change {
        let until_ms = match why {
            WhyDown::Errors => {
                self.ejections = (self.ejections + 1).min(10);
                now_ms.saturating_add(
                    millis(settings.errors.eject).saturating_mul(u64::from(self.ejections)),
                )
            }
            _ => now_ms,
        };
        self.state = HealthState::Down { why, until_ms, tried_ms: now_ms };
        self.begin(now_ms);
        let wait = match (&settings.check, why) {
            (Some(check), _) => check.every,
            (None, WhyDown::Errors) => Duration::ZERO,
            (None, _) => settings.probe_every,
        };
        self.next_probe_ms = now_ms.saturating_add(millis(wait));
        Change::Down(why)
    }

    fn restore(&mut self, now_ms: u64, settings: &HealthSettings) -> Change {
        self.state = HealthState::Up { since_ms: now_ms, growing: !settings.slow_start.is_zero() };
        self.begin(now_ms);
        Change::Up
    }

    /// Begins a new epoch: the counts belonged to the old one.
    fn begin(&mut self, now_ms: u64) {
        self.epoch = self.epoch.wrapping_add(1);
        self.refused = 0;
        self.timeouts = 0;
        self.contrary = 0;
        self.window = Window::default();
        self.next_probe_ms = self.next_probe_ms.max(now_ms);
    }
}

/// How much longer than its time-out a probe may be under way.
const FORGOTTEN: Duration = Duration::from_secs(5);

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
