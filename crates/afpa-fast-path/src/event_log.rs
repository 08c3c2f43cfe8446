//! The kernel's answers: for the access log, and for the policy of the cache.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use afpa_bpf::{Event, kind};
use afpa_cache::ObjectId;
use afpa_framework::{Client, Network};
use afpa_http::MOST_CHOSEN;
use afpa_module_http::AccessRecord;
use afpa_proxy::forwarded;

/// The facts about an answer that its event lacks.
#[derive(Clone)]
pub(crate) struct AnswerDescription {
    /// The request target, as clients spell it.
    pub(crate) target: Arc<[u8]>,
    /// Where `object` is.
    pub(crate) origin: Origin,
    pub(crate) object: ObjectId,
    /// Bytes of the head of a whole answer.
    pub(crate) head: usize,
}

/// A cache of a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Origin {
    /// Its files. The number is the configuration's.
    Files(u32),
    /// The answers of servers, which outlive a configuration.
    Answers,
}

/// The description of each pinned version, by the number that events carry.
#[derive(Default)]
pub(crate) struct VersionRegister(Mutex<RegisterEntries>);

#[derive(Default)]
struct RegisterEntries {
    described: HashMap<u64, AnswerDescription>,
    retired: VecDeque<(Instant, u64)>,
}

/// Answers are reported within a tick of the heartbeat. After this time no event names a retired version.
const RETIRED_FOR: Duration = Duration::from_secs(5);

impl VersionRegister {
    pub(crate) fn enter(&self, version: u64, described: AnswerDescription) {
        self.lock().described.insert(version, described);
    }

    /// The kernel does not answer with these any more, but may still report some answers.
    pub(crate) fn retire(&self, versions: &[u64]) {
        let now = Instant::now();
        self.lock().retired.extend(versions.iter().map(|version| (now, *version)));
    }

    pub(crate) fn forget_retired(&self) {
        let mut entries = self.lock();
        while let Some((since, version)) = entries.retired.front().copied() {
            if since.elapsed() < RETIRED_FOR {
                return;
            }
            entries.retired.pop_front();
            entries.described.remove(&version);
        }
    }

    pub(crate) fn find(&self, version: u64) -> Option<AnswerDescription> {
        self.lock().described.get(&version).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, RegisterEntries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The fields that the log needs of the header blocks which the kernel remembers. Clients repeat their
/// blocks, so few have to be read.
#[derive(Default)]
pub(crate) struct HeaderBlocks(HashMap<(u32, u32), Arc<LoggedFields>>);

/// Values of field lines; empty: there is none, or the kernel has forgotten it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct LoggedFields {
    host: Box<[u8]>,
    referer: Box<[u8]>,
    user_agent: Box<[u8]>,
    /// The values of all X-Forwarded-For lines, in order.
    forwarded_for: Box<[Box<[u8]>]>,
}

/// Most blocks that are kept. When there are more, all are forgotten.
const BLOCKS_MAX: usize = 4096;

impl HeaderBlocks {
    /// The fields of an answered request; `read` reads its block from the kernel.
    pub(crate) fn lines(
        &mut self,
        event: &Event,
        read: impl FnOnce(&Event) -> Option<Vec<u8>>,
    ) -> Arc<LoggedFields> {
        let name = (event.block, event.block_sequence);
        if let Some(known) = self.0.get(&name) {
            return Arc::clone(known);
        }
        let Some(block) = read(event) else { return Arc::default() };
        if self.0.len() >= BLOCKS_MAX {
            self.0.clear();
        }
        let lines = Arc::new(LoggedFields::read(&block));
        self.0.insert(name, Arc::clone(&lines));
        lines
    }
}

impl LoggedFields {
    /// The fields of a block that the programs have checked line by line.
    fn read(block: &[u8]) -> Self {
        let first = |name| values(block, name).next().unwrap_or_default().into();
        Self {
            host: first("Host"),
            referer: first("Referer"),
            user_agent: first("User-Agent"),
            forwarded_for: values(block, "X-Forwarded-For").map(Box::from).collect(),
        }
    }
}

fn values<'b>(block: &'b [u8], name: &'static str) -> impl Iterator<Item = &'b [u8]> {
    block.split(|byte| *byte == b'\n').filter_map(move |line| {
        let (own, value) = line.split_at_checked(name.len())?;
        let value = value.strip_prefix(b":")?;
        own.eq_ignore_ascii_case(name.as_bytes()).then(|| value.trim_ascii())
    })
}

/// How many answers an event stands for.
pub(crate) fn weight(event: &Event) -> u32 {
    event.weight.max(1)
}

/// The record of an answer. Its time is the Date of the answer. Its client is the one that routers in front
/// name, if the site believes them and the kernel still remembers the header block.
pub(crate) fn record<'d>(
    event: &Event,
    described: &'d AnswerDescription,
    lines: &'d LoggedFields,
    believed: &[Network],
) -> AccessRecord<'d> {
    let peer = IpAddr::V6(Ipv6Addr::from(event.flow.client)).to_canonical();
    let forwarded_for = lines.forwarded_for.iter().map(|line| &**line);
    let whole = event.kind == kind::WHOLE;
    let content = (event.length as usize).saturating_sub(described.head);
    AccessRecord {
        time_unix_us: u64::from(event.date) * 1_000_000,
        client: Client::Ip(forwarded::client(forwarded_for, peer, believed)),
        method: if event.head != 0 { "HEAD" } else { "GET" },
        target: &described.target,
        version: if event.old != 0 { "HTTP/1.0" } else { "HTTP/1.1" },
        status: if event.kind == kind::NOT_MODIFIED { 304 } else { 200 },
        body_bytes: if whole { content as u64 } else { 0 },
        duration_us: 0,
        host: &lines.host,
        referer: &lines.referer,
        user_agent: &lines.user_agent,
        user: "",
        request_id: b"",
        trace_id: b"",
        weight: weight(event),
        source: "kernel",
        remote: None,
        tls: None,
        span: None,
        chosen: [b""; MOST_CHOSEN],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use afpa_bpf::FlowKey;

    fn described() -> AnswerDescription {
        AnswerDescription {
            target: Arc::from(&b"/a%20b"[..]),
            origin: Origin::Files(1),
            object: ObjectId(7),
            head: 200,
        }
    }

    fn event(kind: u8, head: u8) -> Event {
        let addresses = ["192.0.2.7:1234", "192.0.2.1:80"].map(|text| text.parse().unwrap());
        let flow = FlowKey::new(addresses[0], addresses[1]);
        let (listener, site, date, version) = (1, 1, 971_186_136, 5);
        let (length, weight, block, block_sequence) = (812, 64, 3, 2);
        Event {
            flow,
            listener,
            site,
            date,
            version,
            length,
            weight,
            kind,
            head,
            old: 0,
            reserved: 0,
            block,
            block_sequence,
            spare: 0,
        }
    }

    #[test]
    fn the_client_is_whom_a_router_names_that_is_believed() {
        let block = b"Host: a\r\nx-forwarded-for: 6.6.6.6, 198.51.100.3\r\nX-Forwarded-For:192.0.2.9\r\n\r\n";
        let (described, lines) = (described(), LoggedFields::read(block));
        let client = |lines, believed: &[Network]| {
            record(&event(kind::WHOLE, 0), &described, lines, believed).client
        };
        let routers = ["192.0.2.0/24".parse().unwrap()];
        let named = |address: &str| Client::Ip(address.parse().unwrap());
        assert_eq!(client(&lines, &routers), named("198.51.100.3"));
        assert_eq!(client(&lines, &[]), named("192.0.2.7"));
        assert_eq!(
            client(&LoggedFields::default(), &routers),
            named("192.0.2.7"),
            "it was forgotten"
        );
    }

    const BLOCK: &[u8] =
        b"HOST: a.org:81\r\nX-Host: b\r\nuser-agent:  wget 1 \r\nReferer: /\r\nReferer: 2\r\n\r\n";

    #[test]
    fn answers_become_records() {
        let (described, lines) = (described(), LoggedFields::read(BLOCK));
        let whole = record(&event(kind::WHOLE, 0), &described, &lines, &[]);
        assert_eq!((whole.method, whole.status, whole.body_bytes), ("GET", 200, 612));
        assert_eq!((whole.target, whole.source), (&b"/a%20b"[..], "kernel"));
        assert_eq!(whole.client, Client::Ip("192.0.2.7".parse().unwrap()));
        assert_eq!((whole.host, whole.referer), (&b"a.org:81"[..], &b"/"[..]));
        assert_eq!((whole.user_agent, whole.weight), (&b"wget 1"[..], 64));
        let head = record(&event(kind::HEAD, 1), &described, &lines, &[]);
        assert_eq!((head.method, head.status, head.body_bytes), ("HEAD", 200, 0));
        let not_modified = record(&event(kind::NOT_MODIFIED, 0), &described, &lines, &[]);
        assert_eq!((not_modified.status, not_modified.body_bytes), (304, 0));
    }

    #[test]
    fn a_block_is_asked_for_once_unless_it_was_forgotten() {
        let mut blocks = HeaderBlocks::default();
        let mut event = event(kind::WHOLE, 0);
        assert_eq!(*blocks.lines(&event, |_| None), LoggedFields::default());
        assert_eq!(*blocks.lines(&event, |_| Some(BLOCK.to_vec())).host, *b"a.org:81");
        assert_eq!(*blocks.lines(&event, |_| panic!("it is known")).host, *b"a.org:81");
        event.block_sequence += 2;
        let other = blocks.lines(&event, |_| Some(b"Host: b\r\n\r\n".to_vec()));
        assert_eq!((&*other.host, &*other.user_agent), (&b"b"[..], &b""[..]));
        for block in 0..2 * BLOCKS_MAX as u32 {
            blocks.lines(&Event { block, ..event }, |_| Some(Vec::new()));
        }
        assert!(blocks.0.len() <= BLOCKS_MAX);
    }

    #[test]
    fn a_retired_version_is_known_for_its_last_reports() {
        let register = VersionRegister::default();
        register.enter(5, described());
        register.retire(&[5]);
        register.forget_retired();
        assert!(register.find(5).is_some() && register.find(6).is_none());
    }
}
