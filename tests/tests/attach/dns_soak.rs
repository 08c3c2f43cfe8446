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
use afpa_tests::dns::{A, DnsAttached, DnsClient, DnsLab, NameServer, Query, soak_length};

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
}

impl Model {
    /// The server itself has just given this version.
    fn see(&mut self, version: u32) {
        if self.seen.back().is_none_or(|(_, newest)| *newest < version) {
            self.seen.push_back((Instant::now(), version));
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

#[test]
fn no_answer_is_older_than_a_lease_under_change_and_loss() {
    let impairment = Impairment {
        loss: 0.03,
        duplicate: 0.02,
        reorder: 0.05,
        jitter: Duration::from_millis(1),
        ..Impairment::default()
    };
    let path = Path::Through(Box::new(Rules::both(impairment, Random::seed_or(11))));
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
const BATCH: u16 = 128;

/// As many answers as the machine gives, while the zone changes and somebody asks for names that nobody has.
#[test]
fn no_answer_of_very_many_is_older_than_a_lease() {
    let lab = match DnsLab::new(NameServer::Nsd, &zone(1)) {
        Ok(lab) => lab,
        Err(reason) => afpa_testkit::skip!("{reason}"),
    };
    let attached = lab.attach(&["--rate", "0"]);
    let is_over = AtomicBool::new(false);
    let flood = lab.client(false);
    let (checked, answered) = std::thread::scope(|scope| {
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
        let counts = std::panic::catch_unwind(AssertUnwindSafe(|| rush(&lab, &attached)));
        is_over.store(true, Ordering::Relaxed);
        counts.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    });
    println!("{checked} answers, {answered} by the kernel, none older than a lease");
    assert!(checked > 1000 && answered > checked / 10, "{:#?}", attached.statistics());
}

fn rush(lab: &DnsLab, attached: &DnsAttached) -> (u64, u64) {
    let mut random = Random::new(Random::seed_or(14));
    let (mut client, mut server) = (lab.client(false), lab.past_us(false));
    for one in [&mut client, &mut server] {
        one.set_patience(Duration::from_millis(50));
    }
    let mut model = Model { told: 1, ..Model::default() };
    let (began, mut changed, mut checked) = (Instant::now(), Instant::now(), 0);
    let (mut pause, mut first) = (CHANGE, 0u16);
    let queries: Vec<Query> = (0..BATCH)
        .map(|id| {
            let name = format!("n{}.example.test", usize::from(id) % NAMES);
            Query { id, edns: (id % 2 == 0).then_some(1232), ..Query::new(&name, A) }
        })
        .collect();
    let length = soak_length(10);
    while began.elapsed() < length {
        if changed.elapsed() > pause {
            model.told += 1;
            lab.change_zone(&zone(model.told));
            changed = Instant::now();
            pause = if random.one_in(3) { CHANGE } else { CHANGE * 6 };
        }
        if let Some(version) = ask(&mut server, &mut random, true) {
            model.see(version);
        }
        first = first.wrapping_add(BATCH);
        let asked = Instant::now();
        for query in &queries {
            client.send(&Query { id: query.id.wrapping_add(first), ..query.clone() }.bytes());
        }
        let oldest = model.oldest(asked);
        for _ in &queries {
            let Some(answer) = client.receive() else { break };
            let id = u16::from_be_bytes([answer[0], answer[1]]).wrapping_sub(first);
            // One to an earlier batch may come late.
            let Some(query) = queries.get(usize::from(id)) else { continue };
            let version = version(&answer, query);
            let newest = model.told;
            assert!((oldest..=newest).contains(&version), "{version}, not of {oldest} to {newest}");
            checked += 1;
        }
    }
    (checked, attached.answered())
}
