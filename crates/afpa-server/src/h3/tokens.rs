//! Tokens by which a client proves its address at the beginning of a later connection (RFC 9000 section 8.1.3). Each is good
//! once: somebody who has recorded one could have us answer to its client again and again.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use quinn_proto::{TokenLog, TokenReuseError};

/// The tokens that were used at a socket.
#[derive(Debug)]
pub(super) struct UsedTokens(Mutex<Used>);

#[derive(Debug)]
struct Used {
    before: HashSet<u128>,
    now: HashSet<u128>,
    /// Tokens that were issued before this are good no more: those that were used are forgotten.
    since: SystemTime,
    /// When the present ones began.
    begun: SystemTime,
}

/// Tokens of half of the memory.
const HALF: usize = 16 * 1024;

impl Default for UsedTokens {
    fn default() -> Self {
        let (before, now) = (HashSet::new(), HashSet::new());
        let since = SystemTime::UNIX_EPOCH;
        Self(Mutex::new(Used { before, now, since, begun: since }))
    }
}

impl Used {
    fn take(&mut self, nonce: u128, issued: SystemTime, now: SystemTime) -> bool {
        if issued < self.since || self.before.contains(&nonce) {
            return false;
        }
        if self.now.len() >= HALF {
            self.before = std::mem::take(&mut self.now);
            self.since = std::mem::replace(&mut self.begun, now);
        }
        self.now.insert(nonce)
    }
}

impl TokenLog for UsedTokens {
    fn check_and_insert(
        &self,
        nonce: u128,
        issued: SystemTime,
        _: Duration,
    ) -> Result<(), TokenReuseError> {
        let mut used = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        used.take(nonce, issued, SystemTime::now()).then_some(()).ok_or(TokenReuseError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_good_once_and_none_that_may_be_forgotten_is() {
        let used = UsedTokens::default();
        let mut used = used.0.lock().expect("one at a time");
        let at = |second: u64| SystemTime::UNIX_EPOCH + Duration::from_secs(second);
        assert!(used.take(1, at(10), at(20)));
        assert!(!used.take(1, at(10), at(21)));
        let half = HALF as u128;
        // Each is issued a second before it is used.
        for nonce in 2..3 * half {
            let second = nonce as u64 + 20;
            assert!(used.take(nonce, at(second - 1), at(second)), "{nonce}");
        }
        assert!(used.before.len() + used.now.len() <= 2 * HALF);
        for nonce in 1..3 * half {
            assert!(!used.take(nonce, at(nonce as u64 + 19), at(1_000_000)), "{nonce}");
        }
    }
}
