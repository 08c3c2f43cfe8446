//! The zones of FerretDataset (Kakarla and others, *SCALE*, NSDI 2022) behind `afpa attach --dns`: each answer of the kernel is the
//! server's own, byte for byte. `AFPA_FERRET` names the dataset's folder; it is not part of this tree. `AFPA_DNS_SERVERS` names servers.

use std::collections::BTreeMap;
use std::time::Instant;

use afpa_netlab::BedOptions;
use afpa_testkit::Random;
use afpa_tests::dns::{DnsLab, NameServer, Query, soak_length};
use afpa_tests::ferret::FerretZone;
use serde_json::Value;

/// A server has so many zones at a time, each of which is polled for its lease. No two of them have one name.
const ZONES: usize = 300;
const OWN: &str = "$ORIGIN example.test.\n$TTL 3600\n@ IN SOA ns1 host 1 3600 600 86400 300\n@ IN NS ns1\nns1 IN A 10.77.0.1\n";

/// A zone without a dot at the end of its name, its text, and its questions.
struct Case {
    apex: String,
    zone: String,
    questions: Vec<Query>,
}

impl Case {
    fn of(zone: FerretZone) -> Option<Self> {
        let FerretZone { apex, text: zone, questions, .. } = zone;
        let apex = apex.strip_suffix('.')?.to_owned();
        let question = |told: &Value| {
            let kind = match told["Query"]["Type"].as_str()? {
                "A" => 1,
                "NS" => 2,
                "CNAME" => 5,
                "SOA" => 6,
                "TXT" => 16,
                "AAAA" => 28,
                "DNAME" => 39,
                _ => return None,
            };
            Some(Query::new(told["Query"]["Name"].as_str()?, kind))
        };
        let questions: Vec<_> = questions.iter().filter_map(question).collect();
        let fits = !apex.is_empty() && apex != "example.test";
        (fits && !questions.is_empty()).then_some(Self { apex, zone, questions })
    }

    /// In turns, each with every name once at most. The largest come first.
    fn in_turns(all: Vec<Self>) -> Vec<Vec<Self>> {
        let mut by_apex: BTreeMap<String, Vec<Self>> = BTreeMap::new();
        for case in all {
            by_apex.entry(case.apex.clone()).or_default().push(case);
        }
        let mut turns: Vec<Vec<Self>> = Vec::new();
        while !by_apex.is_empty() {
            let next: Vec<Self> = by_apex.values_mut().filter_map(Vec::pop).collect();
            by_apex.retain(|_, cases| !cases.is_empty());
            let mut next = next.into_iter().peekable();
            while next.peek().is_some() {
                turns.push(next.by_ref().take(ZONES).collect());
            }
        }
        turns.sort_by_key(|turn| std::cmp::Reverse(turn.len()));
        turns
    }
}

#[test]
fn answers_for_zones_of_every_shape_are_the_servers() {
    let Some(zones) = FerretZone::all() else {
        afpa_testkit::skip!("AFPA_FERRET names no folder of FerretDataset");
    };
    let all: Vec<Case> = zones.filter_map(Case::of).collect();
    let count = all.len();
    let turns = Case::in_turns(all);
    for kind in NameServer::chosen() {
        let (begun, mut zones, mut asked, mut answered) = (Instant::now(), 0, 0, 0);
        for turn in turns.iter().take_while(|_| begun.elapsed() < soak_length(60)) {
            let [more, by_kernel] = match compare(kind, turn) {
                Ok(counts) => counts,
                Err(reason) => afpa_testkit::skip!("{reason}"),
            };
            (zones, asked, answered) = (zones + turn.len(), asked + more, answered + by_kernel);
            eprintln!("{kind:?}: {zones} zones, {asked} questions, {answered} by the kernel");
        }
        println!(
            "{kind:?}: {zones} of {count} zones, {asked} questions, {answered} answered by the kernel, none differs"
        );
        assert!(answered > asked / 4, "{answered} of {asked}");
    }
}

/// How many questions were compared, and how many of them the kernel answered.
fn compare(kind: NameServer, cases: &[Case]) -> Result<[u64; 2], String> {
    let zones: Vec<_> = cases.iter().map(|case| (case.apex.as_str(), case.zone.as_str())).collect();
    let lab = DnsLab::with_others(kind, OWN, &zones, &BedOptions::default())?;
    let attached = lab.attach(&["--rate", "0"]);
    let (mut client, mut server) = (lab.client(false), lab.past_us(false));
    let mut random = Random::new(Random::seed_or(53));
    let classes = |question: &Query| {
        [(None, 0), (Some(1232), 0), (Some(1232), 0x80)].map(|(edns, flags)| Query {
            edns,
            extended: [0, 0, flags, 0],
            ..question.clone()
        })
    };
    let all: Vec<Query> =
        cases.iter().flat_map(|case| case.questions.iter().flat_map(classes)).collect();
    let (mut pinned, mut passes) = (0, 0);
    while passes < 3 || (passes < 12 && attached.pinned() > pinned) {
        pinned = attached.pinned();
        passes += 1;
        for query in &all {
            client.ask(&query.bytes());
        }
        attached.settle();
    }
    let before = attached.answered();
    for query in &all {
        let query = Query { id: random.next() as u16, ..query.clone() }.bytes();
        assert_eq!(client.ask(&query), server.ask(&query), "{kind:?}, {query:02x?}");
    }
    Ok([all.len() as u64, attached.answered() - before])
}
