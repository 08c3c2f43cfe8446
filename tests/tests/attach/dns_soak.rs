//! Answers for DNS while the zone changes several times a second, and the network loses, doubles and reorders: each answer is one
//! that the server may have given.

use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use afpa_netlab::BedOptions;
use afpa_netlab::Path;
use afpa_netlab::inject::{Impairment, Rules};
use afpa_testkit::Random;
use afpa_tests::dns::{A, DnsAttached, DnsClient, DnsLab, NameServer, Query, SOA, soak_length};

const NAMES: usize = 12;
/// A lease of 400 milliseconds, and a moment for whoever looks.
const LATEST: Duration = Duration::from_millis(500);
const CHANGE: Duration = Duration::from_millis(400);

/// A zone whose addresses are all its version.
fn zone(version: u32) -> String {
    let [_, high, middle, low] = version.to_be_bytes();
    let mut zone = format!(
        "$ORIGIN example.test.\n$TTL 3600\n@ IN SOA ns1 host {version} 3600 600 86400 300\n@ IN NS ns1\nns1 IN A 10.77.0.1\n"
    );
    for name in 0..NAMES {
        zone.push_str(&format!("n{name} IN A 10.{high}.{middle}.{low}\n"));
    }
    zone
}

/// The version of an answer, whose first record follows the question: a pointer, ten bytes, the address.
fn version(answer: &[u8], query: &Query) -> u32 {
    let at = 12 + query.name.len() + 4 + 12;
    let data: [u8; 4] = answer[at..at + 4].try_into().expect("four bytes");
    assert_eq!((data[0], answer[7]), (10, 1), "{answer:02x?}");
    u32::from_be_bytes(data) & 0x00ff_ffff
}

/// Versions that an answer may have, by when they were seen.
#[derive(Default)]
struct Model {
    /// Since when clients that the server itself answers have seen a version, the newest one last.
    seen: VecDeque<(Instant, u32)>,
    /// The newest one that was written for the server.
    told: u32,
    /// How many different ones were seen.
    versions: u64,
}

impl Model {
    /// The server itself has just given this version.
    fn see(&mut self, version: u32) {
        if self.seen.back().is_none_or(|(_, newest)| *newest < version) {
            self.seen.push_back((Instant::now(), version));
            self.versions += 1;
        }
    }

    /// The oldest version that may answer a question that was asked then.
    fn oldest(&mut self, asked: Instant) -> u32 {
        while self.seen.get(1).is_some_and(|(since, _)| *since + LATEST <= asked) {
            self.seen.pop_front();
        }
        let first = self.seen.front().filter(|(since, _)| *since + LATEST <= asked);
        first.map_or(0, |(_, version)| *version)
    }
}

fn ask(client: &mut DnsClient, random: &mut Random, has_edns: bool) -> Option<u32> {
    let name = format!("n{}.example.test", random.next() % NAMES as u64);
    let edns = has_edns.then_some(1232);
    let query = Query { id: random.next() as u16, edns, ..Query::new(&name, A) };
    client.ask(&query.bytes()).map(|answer| version(&answer, &query))
}

/// A bad path's treatment of packets, both ways.
fn bad() -> Impairment {
    Impairment {
        loss: 0.03,
        duplicate: 0.02,
        reorder: 0.05,
        jitter: Duration::from_millis(1),
        ..Impairment::default()
    }
}

#[test]
fn no_answer_is_older_than_a_lease_under_change_and_loss() {
    let path = Path::Through(Box::new(Rules::both(bad(), Random::seed_or(11))));
    let options = BedOptions { path, ..BedOptions::default() };
    let lab = match DnsLab::with(NameServer::Nsd, &zone(1), &options) {
        Ok(lab) => lab,
        Err(reason) => afpa_testkit::skip!("{reason}"),
    };
    let attached = lab.attach(&["--rate", "0"]);
    let (checked, answered) = soak(&lab, &attached, soak_length(30));
    println!("{checked} answers, {answered} by the kernel, none older than a lease");
    assert!(checked > 100 && answered > checked / 10, "{:#?}", attached.statistics());
}

fn soak(lab: &DnsLab, attached: &DnsAttached, length: Duration) -> (u64, u64) {
    let mut random = Random::new(Random::seed_or(12));
    let (mut client, mut server) = (lab.client(false), lab.past_us(false));
    for one in [&mut client, &mut server] {
        one.set_patience(Duration::from_millis(50));
    }
    let mut model = Model { told: 1, ..Model::default() };
    let (began, mut changed, mut checked) = (Instant::now(), Instant::now(), 0);
    let mut pause = CHANGE;
    while began.elapsed() < length {
        if changed.elapsed() > pause {
            model.told += 1;
            lab.change_zone(&zone(model.told));
            changed = Instant::now();
            // Now and then long enough for answers to be learnt.
            pause = if random.one_in(3) { CHANGE * 6 } else { CHANGE };
        }
        let has_edns = random.one_in(2);
        if let Some(version) = ask(&mut server, &mut random, has_edns) {
            model.see(version);
        }
        for _ in 0..8 {
            let asked = Instant::now();
            let Some(version) = ask(&mut client, &mut random, has_edns) else { continue };
            let (oldest, newest) = (model.oldest(asked), model.told);
            assert!((oldest..=newest).contains(&version), "{version}, not of {oldest} to {newest}");
            checked += 1;
        }
    }
    (checked, attached.answered())
}

/// Questions that are sent at once.
const BATCH: usize = 64;
/// Questions that may wait for an answer.
const WINDOW: usize = 256;
/// Letters of a name whose case tells questions of one id apart.
const LETTERS: [usize; 11] = [4, 5, 6, 7, 8, 9, 10, 12, 13, 14, 15];

/// A client with many questions under way. An answer may come late, and after that of a later question.
struct Asker<'lab> {
    client: DnsClient,
    model: &'lab mut Model,
    /// By id: the newest question, and the oldest version that may answer it.
    asked: Vec<Option<(Query, u32)>>,
    sent: usize,
    waiting: usize,
    checked: u64,
    /// Answers to earlier questions of the same id.
    late: u64,
}

impl Asker<'_> {
    /// The next question. Ids come again, but not with the same spelling of the name within a hundred million questions.
    fn next(&self) -> Query {
        let name = format!("n{}.example.test", self.sent % 10);
        let (id, turn) = (self.sent as u16, self.sent >> 16);
        let edns = self.sent.is_multiple_of(2).then_some(1232);
        let mut query = Query { id, edns, ..Query::new(&name, A) };
        for (bit, at) in LETTERS.into_iter().enumerate() {
            if turn >> bit & 1 == 1 {
                query.name[at].make_ascii_uppercase();
            }
        }
        query
    }

    fn send_some(&mut self) {
        let oldest = self.model.oldest(Instant::now());
        for _ in 0..BATCH {
            let query = self.next();
            self.client.send(&query.bytes());
            let at = usize::from(query.id);
            self.asked[at] = Some((query, oldest));
            self.sent += 1;
        }
        self.waiting += BATCH;
    }

    /// Reads answers until no more than the window's questions wait for one.
    fn receive_some(&mut self) {
        while self.waiting > WINDOW - BATCH {
            match self.client.receive() {
                Some(answer) => self.check(&answer),
                // An answer that has not come by now is lost.
                None => self.waiting = BATCH,
            }
            self.waiting -= 1;
        }
    }

    fn check(&mut self, answer: &[u8]) {
        let id = u16::from_be_bytes([answer[0], answer[1]]);
        let (query, oldest) = self.asked[usize::from(id)].as_ref().expect("a question");
        if !answer[12..].starts_with(&query.name) {
            self.late += 1;
            return;
        }
        let (version, newest) = (version(answer, query), self.model.told);
        assert!((*oldest..=newest).contains(&version), "{version}, not of {oldest} to {newest}");
        self.checked += 1;
    }
}

/// Changes of a zone: the order to the server, and the pause between a version and the next one.
struct Changes {
    tell: fn(&DnsLab, u32),
    pause: fn(u32) -> Duration,
}

impl Changes {
    /// A file is read again, a few times in a row, and then long enough not for answers to be learnt.
    const FILES: Self = Self {
        tell: |lab, version| lab.change_zone(&zone(version)),
        pause: |version| if version.is_multiple_of(3) { CHANGE } else { CHANGE * 6 },
    };
    /// UPDATE (RFC 2136): a hundred a second for two seconds, then none for three.
    const UPDATES: Self = Self {
        tell: |lab, version| lab.client(false).send(&update(version)),
        pause: |version| Duration::from_millis(if version.is_multiple_of(200) { 3000 } else { 10 }),
    };
}

/// An UPDATE that gives all names the addresses of a version.
fn update(version: u32) -> Vec<u8> {
    let [_, high, middle, low] = version.to_be_bytes();
    let mut records = Vec::new();
    for number in 0..NAMES {
        let name = Query::new(&format!("n{number}.example.test"), A).name;
        // All of its addresses go (class ANY, no data), and one comes (class IN, for an hour).
        records.extend([&name[..], &[0, 1, 0, 255, 0, 0, 0, 0, 0, 0]].concat());
        let come = [0, 1, 0, 1, 0, 0, 14, 16, 0, 4, 10, high, middle, low];
        records.extend([&name[..], &come].concat());
    }
    let zone = Query::new("example.test", SOA);
    let mut bytes = Query { flags: 0x2800, behind: records, ..zone }.bytes();
    bytes[8..10].copy_from_slice(&(2 * NAMES as u16).to_be_bytes());
    bytes
}

/// As many answers as the machine gives, while the zone changes and somebody asks for names that nobody has.
fn rush(kind: NameServer, path: Path, changes: &Changes, length: Duration) {
    let options = BedOptions { path, ..BedOptions::default() };
    let lab = match DnsLab::with(kind, &zone(1), &options) {
        Ok(lab) => lab,
        Err(reason) => afpa_testkit::skip!("{reason}"),
    };
    let attached = lab.attach(&["--rate", "0"]);
    let is_over = AtomicBool::new(false);
    let flood = lab.client(false);
    let mut model = Model { told: 1, ..Model::default() };
    let (checked, late) = std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut random = Random::new(Random::seed_or(13));
            while !is_over.load(Ordering::Relaxed) {
                for _ in 0..32 {
                    let name = format!("x{:x}.example.test", random.next());
                    flood.send(&Query::new(&name, A).bytes());
                }
                std::thread::sleep(Duration::from_millis(10));
            }
        });
        let ask = || ask_and_change(&lab, &mut model, changes, length);
        let counts = std::panic::catch_unwind(AssertUnwindSafe(ask));
        is_over.store(true, Ordering::Relaxed);
        counts.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    });
    let (answered, told, seen) = (attached.answered(), model.told, model.versions);
    println!(
        "{checked} answers, {answered} by the kernel, {late} too late to be compared, {told} versions, of which the \
         server showed {seen}: none older than a lease"
    );
    assert!(checked > 1000 && answered > checked / 10, "{:#?}", attached.statistics());
    assert!(seen > 2 && late <= checked / 10);
}

fn ask_and_change(
    lab: &DnsLab,
    model: &mut Model,
    changes: &Changes,
    length: Duration,
) -> (u64, u64) {
    let mut random = Random::new(Random::seed_or(14));
    let (mut client, mut server) = (lab.client(false), lab.past_us(false));
    for one in [&mut client, &mut server] {
        one.set_patience(Duration::from_millis(50));
    }
    let (began, mut changed) = (Instant::now(), Instant::now());
    let mut pause = CHANGE;
    let asked = vec![None; 1 << 16];
    let mut asker = Asker { client, model, asked, sent: 0, waiting: 0, checked: 0, late: 0 };
    while began.elapsed() < length {
        if changed.elapsed() > pause {
            asker.model.told += 1;
            (changes.tell)(lab, asker.model.told);
            changed = Instant::now();
            pause = (changes.pause)(asker.model.told);
        }
        if let Some(version) = ask(&mut server, &mut random, true) {
            asker.model.see(version);
        }
        asker.send_some();
        asker.receive_some();
    }
    (asker.checked, asker.late)
}

#[test]
fn no_answer_of_very_many_is_older_than_a_lease() {
    let path = BedOptions::default().path;
    rush(NameServer::Nsd, path, &Changes::FILES, soak_length(10));
}

/// The same where packets are lost, come twice, and overtake each other.
#[test]
fn no_answer_of_very_many_on_a_bad_path_is_older_than_a_lease() {
    let path = Path::Through(Box::new(Rules::both(bad(), Random::seed_or(15))));
    rush(NameServer::Nsd, path, &Changes::FILES, soak_length(10));
}

#[test]
fn no_answer_is_older_than_a_lease_while_a_zone_changes_a_hundred_times_a_second() {
    let path = BedOptions::default().path;
    rush(NameServer::KnotWithUpdates, path, &Changes::UPDATES, soak_length(10));
}
