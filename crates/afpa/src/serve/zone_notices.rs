//! Secondaries that are to hear of new zones. Few threads tell them, however many zones there are: the wait for one that is gone takes
//! half a minute, and each zone is new at the start.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use afpa_dns::tsig::Key;
use afpa_dns::{Name, Zone};
use afpa_module_dns::notify;

/// Threads at most.
const AT_ONCE: usize = 128;

/// Those that wait, and the threads that tell them.
#[derive(Clone, Default)]
pub(super) struct Notices(Arc<Mutex<Waiting>>);

#[derive(Default)]
struct Waiting {
    turns: VecDeque<Notice>,
    /// Of several versions of a zone a secondary hears of the last one.
    zones: HashMap<Notice, (Arc<Zone>, Option<Arc<Key>>)>,
    threads: usize,
}

/// A zone by its name in lower case, and a secondary.
type Notice = (Name, SocketAddr);

impl Notices {
    /// Tells the secondaries of a zone, aside: they may take long, or be gone.
    pub(super) fn tell(
        &self,
        zone: &Arc<Zone>,
        key: Option<&Arc<Key>>,
        secondaries: &[SocketAddr],
    ) {
        for secondary in secondaries {
            let notice = (zone.apex().lower(), *secondary);
            let mut waiting = self.waiting();
            let told = (Arc::clone(zone), key.cloned());
            if waiting.zones.insert(notice.clone(), told).is_none() {
                waiting.turns.push_back(notice);
            }
            if waiting.threads >= AT_ONCE {
                continue;
            }
            let notices = self.clone();
            let thread = std::thread::Builder::new().name("afpa-notify".to_owned());
            match thread.spawn(move || notices.go_on()) {
                Ok(_) => waiting.threads += 1,
                Err(error) => tracing::warn!(%error, "a secondary is told later"),
            }
        }
    }

    /// Tells one after another, until none waits.
    fn go_on(&self) {
        while let Some((zone, key, secondary)) = self.take_next() {
            let name = zone.apex().clone();
            match notify::tell(&zone, key.as_ref(), secondary) {
                Ok(()) => tracing::debug!(%secondary, "knows of the new {name}"),
                Err(error) => {
                    tracing::warn!(%secondary, %error, "does not answer a NOTIFY of {name}; it will see the new serial number at its next refresh")
                }
            }
        }
    }

    /// The next one. `None`: the thread ends.
    fn take_next(&self) -> Option<(Arc<Zone>, Option<Arc<Key>>, SocketAddr)> {
        let mut waiting = self.waiting();
        let notice = waiting.turns.pop_front();
        let told = notice.and_then(|notice| Some((waiting.zones.remove(&notice)?, notice.1)));
        if told.is_none() {
            waiting.threads -= 1;
        }
        told.map(|((zone, key), secondary)| (zone, key, secondary))
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use afpa_dns::read_zone;

    use super::*;

    #[test]
    fn few_threads_tell_many_secondaries_of_the_last_version() {
        let zone = |serial: u32| {
            let apex = Name::parse("example.org.", &Name::root()).expect("a name");
            let text =
                format!("$TTL 60\n@ SOA ns1 a {serial} 1 1 1 1\n@ NS ns1\nns1 A 192.0.2.1\n");
            let read = read_zone(&apex, "z", &text, &mut |_| Err(String::new()));
            Arc::new(read.zone.expect("a zone"))
        };
        // They say nothing, so none of them is done with before the end of this.
        let silent = std::net::UdpSocket::bind("127.0.0.1:0").expect("bound");
        let port = silent.local_addr().expect("an address").port();
        let secondaries: Vec<SocketAddr> =
            (1..=200).map(|last| SocketAddr::from(([127, 0, 0, last], port))).collect();
        let notices = Notices::default();
        for serial in 1..=3 {
            notices.tell(&zone(serial), None, &secondaries);
        }
        let waiting = notices.waiting();
        assert_eq!(waiting.threads, AT_ONCE);
        assert!(waiting.turns.len() <= secondaries.len());
        assert_eq!(waiting.zones.len(), waiting.turns.len());
        let last = secondaries.last().map(|last| (zone(1).apex().lower(), *last));
        let told = last.and_then(|last| waiting.zones.get(&last));
        assert_eq!(told.map(|(zone, _)| zone.serial()), Some(3));
    }
}
