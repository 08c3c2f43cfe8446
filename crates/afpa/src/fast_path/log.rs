//! What the kernel answered: for the access log, and for the policy of the cache.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use afpa_bpf::{Event, kind};
use afpa_cache::ObjectId;
use afpa_framework::{AccessRecord, Client};

/// What an event does not say of an answer.
#[derive(Clone)]
pub(super) struct Described {
    /// The request target, as clients spell it.
    pub(super) target: Arc<[u8]>,
    /// Whose cache `object` is in.
    pub(super) site: u32,
    pub(super) object: ObjectId,
    /// Bytes of the head of a whole answer.
    pub(super) head: usize,
}

/// Pinned versions by the number that events carry.
#[derive(Default)]
pub(super) struct Register(Mutex<Entries>);

#[derive(Default)]
struct Entries {
    described: HashMap<u64, Described>,
    retired: VecDeque<(Instant, u64)>,
}

/// Answers are reported within a tick of the heart; afterwards nobody asks for their version.
const RETIRED_FOR: Duration = Duration::from_secs(5);

impl Register {
    pub(super) fn enter(&self, version: u64, described: Described) {
        self.lock().described.insert(version, described);
    }

    /// These are answered no more, but may still be reported.
    pub(super) fn retire(&self, versions: &[u64]) {
        let now = Instant::now();
        self.lock().retired.extend(versions.iter().map(|version| (now, *version)));
    }

    pub(super) fn forget_retired(&self) {
        let mut entries = self.lock();
        while let Some((since, version)) = entries.retired.front().copied() {
            if since.elapsed() < RETIRED_FOR {
                return;
            }
            entries.retired.pop_front();
            entries.described.remove(&version);
        }
    }

    pub(super) fn find(&self, version: u64) -> Option<Described> {
        self.lock().described.get(&version).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The record of an answer. The kernel keeps neither Host nor Referer nor User-Agent, and the time is
/// that of the Date it sent.
pub(super) fn record<'d>(event: &Event, described: &'d Described) -> AccessRecord<'d> {
    let whole = event.kind == kind::WHOLE;
    let content = (event.length as usize).saturating_sub(described.head);
    AccessRecord {
        time_unix_us: u64::from(event.date) * 1_000_000,
        client: Client::Ip(IpAddr::V6(Ipv6Addr::from(event.flow.client)).to_canonical()),
        method: if event.head != 0 { "HEAD" } else { "GET" },
        target: &described.target,
        version: "HTTP/1.1",
        status: if event.kind == kind::NOT_MODIFIED { 304 } else { 200 },
        body_bytes: if whole { content as u64 } else { 0 },
        duration_us: 0,
        host: b"",
        referer: b"",
        user_agent: b"",
        source: "kernel",
        remote: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use afpa_bpf::FlowKey;

    fn described() -> Described {
        Described { target: Arc::from(&b"/a%20b"[..]), site: 1, object: ObjectId(7), head: 200 }
    }

    fn event(kind: u8, head: u8) -> Event {
        let addresses = ["192.0.2.7:1234", "192.0.2.1:80"].map(|text| text.parse().unwrap());
        let flow = FlowKey::new(addresses[0], addresses[1]);
        let (listener, site, date, version) = (1, 1, 971_186_136, 5);
        Event {
            flow,
            listener,
            site,
            date,
            version,
            length: 812,
            weight: 1,
            kind,
            head,
            reserved: [0; 6],
        }
    }

    #[test]
    fn answers_become_records() {
        let described = described();
        let whole = record(&event(kind::WHOLE, 0), &described);
        assert_eq!((whole.method, whole.status, whole.body_bytes), ("GET", 200, 612));
        assert_eq!((whole.target, whole.source), (&b"/a%20b"[..], "kernel"));
        assert_eq!(whole.client, Client::Ip("192.0.2.7".parse().unwrap()));
        let head = record(&event(kind::HEAD, 1), &described);
        assert_eq!((head.method, head.status, head.body_bytes), ("HEAD", 200, 0));
        let not_modified = record(&event(kind::NOT_MODIFIED, 0), &described);
        assert_eq!((not_modified.status, not_modified.body_bytes), (304, 0));
    }

    #[test]
    fn a_retired_version_is_known_for_its_last_reports() {
        let register = Register::default();
        register.enter(5, described());
        register.retire(&[5]);
        register.forget_retired();
        assert!(register.find(5).is_some() && register.find(6).is_none());
    }
}
