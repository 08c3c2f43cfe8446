//! Whether a silent server is still there. It is asked by PING (RFC 9113 section 6.7), which it answers even while its
//! applications do not.

/// Silence after which a request does not go to a connection before its server has answered, and after which a
/// connection with requests is asked, in milliseconds.
pub(crate) const LONG_MS: u64 = 10_000;

/// How long a connection with requests may take to answer, in milliseconds; then it gets no more of them.
pub(super) const PATIENCE_MS: u64 = 5_000;

/// When a server was heard of, and whether it was asked since, in steady milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Silence {
    heard_ms: u64,
    /// `None`: something was heard since, or it was not asked.
    asked_ms: Option<u64>,
    /// Nothing but the answer was heard since it was asked. It is not asked again and again: some servers take more than
    /// a few PINGs without requests for an attack.
    was_asked: bool,
}

impl Silence {
    pub(super) fn new(now_ms: u64) -> Self {
        Self { heard_ms: now_ms, asked_ms: None, was_asked: false }
    }

    /// Something has arrived.
    pub(super) fn heard(&mut self, now_ms: u64) {
        (self.heard_ms, self.asked_ms) = (now_ms, None);
    }

    /// A stream was opened, or something has arrived on one.
    pub(super) fn moved(&mut self) {
        self.was_asked = false;
    }

    pub(super) fn heard_ms(&self) -> u64 {
        self.heard_ms
    }

    pub(super) fn lasts_ms(&self, now_ms: u64) -> u64 {
        now_ms.saturating_sub(self.heard_ms)
    }

    /// The server is to be asked. False: it was, and has not answered yet.
    pub(super) fn ask(&mut self, now_ms: u64) -> bool {
        self.was_asked = true;
        self.asked_ms.replace(self.asked_ms.unwrap_or(now_ms)).is_none()
    }

    /// Whether an answer is waited for.
    pub(super) fn is_asked(&self) -> bool {
        self.asked_ms.is_some()
    }

    /// Whether a connection with requests is to be asked.
    pub(super) fn is_due(&self, now_ms: u64) -> bool {
        !self.was_asked && self.lasts_ms(now_ms) >= LONG_MS
    }

    /// Whether the server should have answered.
    pub(super) fn is_unanswered(&self, now_ms: u64) -> bool {
        self.asked_ms.is_some_and(|asked| now_ms.saturating_sub(asked) >= PATIENCE_MS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silent_server_is_asked_once() {
        let mut silence = Silence::new(0);
        assert!(!silence.is_due(LONG_MS - 1) && silence.is_due(LONG_MS));
        assert!(silence.ask(LONG_MS) && !silence.ask(LONG_MS + 1));
        assert!(silence.is_asked() && !silence.is_unanswered(LONG_MS + PATIENCE_MS - 1));
        assert!(silence.is_unanswered(LONG_MS + PATIENCE_MS));
        silence.heard(LONG_MS + PATIENCE_MS);
        assert!(!silence.is_asked() && !silence.is_unanswered(u64::MAX));
        assert!(!silence.is_due(u64::MAX), "only its answer was heard");
        silence.moved();
        assert!(silence.is_due(u64::MAX));
        assert_eq!(silence.lasts_ms(0), 0, "a clock that was read before");
    }
}
