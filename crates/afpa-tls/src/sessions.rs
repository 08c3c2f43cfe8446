//! Sessions of TLS 1.3 that this process keeps itself, each good for one handshake. They protect against replays of
//! early data (RFC 8446, section 8.1): a client that sends the same bytes again finds no session.
//!
//! The store is shared by all workers, so it is divided, and each part has a lock of its own that is held for one look-up.
//! Nothing in it survives the process, and no other process has it.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use rustls::server::StoresServerSessions;

/// Parts of the store.
const PARTS: usize = 16;

/// The longest session: a name of 253 bytes, secrets, and no certificate of a client.
const LONGEST: usize = 2 * 1024;

/// The sessions of all listeners that accept early data.
#[derive(Default)]
pub struct Sessions {
    parts: [Mutex<Part>; PARTS],
    /// Sessions that a part holds at most.
    most: AtomicUsize,
    /// Seconds for which a session is good.
    lifetime: AtomicU64,
}

#[derive(Default)]
struct Part {
    by_id: HashMap<Vec<u8>, Session>,
    /// The oldest first. Some have been taken.
    order: VecDeque<Vec<u8>>,
}

struct Session {
    state: Vec<u8>,
    /// The last second, since the Unix epoch, at which it is good.
    last: u64,
}

impl std::fmt::Debug for Sessions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sessions")
    }
}

impl Sessions {
    /// From now on it holds so many at most, each for so many seconds. A session beyond that takes the place of the oldest.
    pub fn limit(&self, most: usize, lifetime: u32) {
        self.most.store(most.div_ceil(PARTS), Ordering::Relaxed);
        self.lifetime.store(u64::from(lifetime), Ordering::Relaxed);
        for part in &self.parts {
            lock(part).shorten(most.div_ceil(PARTS));
        }
    }

    fn part(&self, id: &[u8]) -> MutexGuard<'_, Part> {
        // IDs are random bytes of rustls.
        let at = id.first().map_or(0, |byte| usize::from(*byte) % PARTS);
        lock(&self.parts[at])
    }

    fn put_at(&self, id: Vec<u8>, state: Vec<u8>, now: u64) -> bool {
        let most = self.most.load(Ordering::Relaxed);
        if most == 0 || state.len() > LONGEST {
            return false;
        }
        let last = now.saturating_add(self.lifetime.load(Ordering::Relaxed));
        let mut part = self.part(&id);
        part.order.push_back(id.clone());
        part.by_id.insert(id, Session { state, last });
        part.shorten(most);
        true
    }

    fn take_at(&self, id: &[u8], now: u64) -> Option<Vec<u8>> {
        let session = self.part(id).by_id.remove(id)?;
        (session.last >= now).then_some(session.state)
    }
}

impl Part {
    /// Drops the oldest sessions. Taken sessions stay in the order for a while, so its length is bounded as well.
    fn shorten(&mut self, most: usize) {
        while self.by_id.len() > most || self.order.len() > 2 * most {
            let Some(oldest) = self.order.pop_front() else { break };
            self.by_id.remove(&oldest);
        }
    }
}

fn lock(part: &Mutex<Part>) -> MutexGuard<'_, Part> {
    part.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Seconds since the Unix epoch. Without a clock no session is good.
fn now() -> Option<u64> {
    SystemTime::now().duration_since(UNIX_EPOCH).ok().map(|time| time.as_secs())
}

impl StoresServerSessions for Sessions {
    fn put(&self, id: Vec<u8>, state: Vec<u8>) -> bool {
        now().is_some_and(|now| self.put_at(id, state, now))
    }

    /// A look-up of TLS 1.2, whose sessions are in tickets.
    fn get(&self, _: &[u8]) -> Option<Vec<u8>> {
        None
    }

    fn take(&self, id: &[u8]) -> Option<Vec<u8>> {
        self.take_at(id, now()?)
    }

    /// rustls asks this for TLS 1.2 alone, whose sessions get no ID here.
    fn can_cache(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(n: u32) -> Vec<u8> {
        n.to_le_bytes().to_vec()
    }

    fn held(sessions: &Sessions) -> usize {
        sessions.parts.iter().map(|part| lock(part).by_id.len()).sum()
    }

    #[test]
    fn a_session_is_taken_once_and_not_too_late() {
        let sessions = Sessions::default();
        sessions.limit(100, 60);
        assert!(sessions.put_at(id(1), b"one".to_vec(), 1000));
        assert!(sessions.put_at(id(2), b"two".to_vec(), 1000));
        assert_eq!(sessions.take_at(&id(1), 1060).as_deref(), Some(&b"one"[..]));
        assert_eq!(sessions.take_at(&id(1), 1060), None);
        assert_eq!(sessions.take_at(&id(2), 1061), None, "it was good for a minute");
        assert_eq!(held(&sessions), 0);
        assert!(!sessions.can_cache() && sessions.get(&id(1)).is_none());
    }

    #[test]
    fn only_so_many_are_held_and_the_oldest_go_first() {
        let sessions = Sessions::default();
        sessions.limit(160, 60);
        for n in 0..1000 {
            assert!(sessions.put_at(id(n), vec![0; 10], 1000));
        }
        assert_eq!(held(&sessions), 160);
        assert!(
            sessions.take_at(&id(0), 1000).is_none() && sessions.take_at(&id(999), 1000).is_some()
        );
        sessions.limit(16, 60);
        assert_eq!(held(&sessions), 16);
        assert!(!sessions.put_at(id(1), vec![0; LONGEST + 1], 1000));
    }

    #[test]
    fn sessions_that_were_taken_leave_nothing_behind_without_bound() {
        let sessions = Sessions::default();
        sessions.limit(160, 60);
        sessions.put_at(id(0), Vec::new(), 1000);
        for n in 1..10_000 {
            sessions.put_at(id(n), Vec::new(), 1000);
            assert!(sessions.take_at(&id(n), 1000).is_some());
        }
        assert!(sessions.parts.iter().all(|part| lock(part).order.len() <= 20));
        assert!(Sessions::default().take_at(&id(0), 1000).is_none());
        assert!(!Sessions::default().put_at(id(0), Vec::new(), 1000), "it may hold none");
    }
}
