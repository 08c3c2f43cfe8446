//! The zones of FerretDataset (Kakarla and others, *SCALE*, NSDI 2022): each with a question, and the answers of BIND, NSD, Knot and
//! PowerDNS. `AFPA_FERRET` names its folder; it is not part of this tree.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use afpa_dns::{Asker, Name, Settings, Transport, Zones, read_zone, respond};
use domain::base::iana::Rtype;
use domain::base::rdata::ComposeRecordData as _;
use domain::base::{Message, ParsedName, ParsedRecord};
use domain::rdata::AllRecordData;
use serde_json::Value;

/// Owner, type and data, all in lower case.
type Line = (Vec<u8>, u16, Vec<u8>);

/// An answer, in the parts that servers are compared by.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Answer {
    rcode: String,
    is_authoritative: bool,
    sections: [BTreeSet<Line>; 3],
}

impl Answer {
    /// As the dataset writes it.
    fn expected(lines: &[Value]) -> Self {
        let mut answer = Self::default();
        let mut section = None;
        for line in lines.iter().filter_map(Value::as_str) {
            match line {
                ";QUESTION" => section = None,
                ";ANSWER" => section = Some(0),
                ";AUTHORITY" => section = Some(1),
                ";ADDITIONAL" => section = Some(2),
                _ => match (section, line.split_once(' ')) {
                    (Some(section), _) => {
                        answer.sections[section].insert(record(line));
                    }
                    (None, Some(("rcode", rcode))) => answer.rcode = rcode.to_owned(),
                    (None, Some(("flags", flags))) => {
                        answer.is_authoritative = flags.split(' ').any(|flag| flag == "AA");
                    }
                    _ => {}
                },
            }
        }
        answer
    }

    /// Without the zone's own name servers beside an answer, and their addresses: some servers leave them out, as ours does and Knot
    /// now does as well (RFC 2181 asks for none of them).
    fn without_servers(mut self) -> Self {
        let [answer, authority, additional] = &mut self.sections;
        if !answer.is_empty() && self.is_authoritative {
            let targets = |lines: &BTreeSet<Line>| -> BTreeSet<Vec<u8>> {
                let of = lines.iter().filter(|(_, rtype, _)| *rtype == 2);
                of.map(|(_, _, data)| data.clone()).collect()
            };
            let (needed, dropped) = (targets(answer), targets(authority));
            authority.retain(|(_, rtype, _)| *rtype != 2);
            additional.retain(|(owner, ..)| {
                let wire = wire(owner);
                needed.contains(&wire) || !dropped.contains(&wire)
            });
        }
        self
    }

    /// For people.
    fn shown(&self) -> String {
        let line = |(owner, rtype, data): &Line| {
            format!("  {} {rtype} {}\n", owner.escape_ascii(), data.escape_ascii())
        };
        let sections =
            self.sections.each_ref().map(|lines| lines.iter().map(line).collect::<String>());
        let [answer, authority, additional] = sections;
        format!(
            "{} aa {}\n{answer} --\n{authority} --\n{additional}",
            self.rcode, self.is_authoritative
        )
    }

    fn given(bytes: &[u8]) -> Self {
        let message = Message::from_octets(bytes).expect("a message");
        let (_, answer, authority, additional) = message.sections().expect("sections");
        let read = |record: ParsedRecord<'_, &[u8]>| {
            let record =
                record.to_any_record::<AllRecordData<_, ParsedName<_>>>().expect("known data");
            let mut data = Vec::new();
            record.data().compose_rdata(&mut data).expect("room");
            let labels = record.owner().iter();
            let owner =
                labels.flat_map(|label| label.as_slice().to_vec().into_iter().chain([b'.']));
            let owner: Vec<u8> = owner.map(|byte| byte.to_ascii_lowercase()).collect();
            (owner, record.rtype().to_int(), data.to_ascii_lowercase())
        };
        let sections = [answer, authority, additional].map(|section| {
            let records = section.map(|record| record.expect("a record"));
            records.filter(|record| record.rtype() != Rtype::OPT).map(read).collect()
        });
        let header = message.header();
        Self { rcode: header.rcode().to_string(), is_authoritative: header.aa(), sections }
    }
}

/// The wire form of a name that is written with dots.
fn wire(name: &[u8]) -> Vec<u8> {
    let labels = name.split(|byte| *byte == b'.').filter(|label| !label.is_empty());
    let mut wire: Vec<u8> =
        labels.flat_map(|label| [label.len() as u8].into_iter().chain(label.to_vec())).collect();
    wire.push(0);
    wire
}

/// A line of the dataset by our reader of zone files.
fn record(line: &str) -> Line {
    let (root, soa) = (Name::root(), "SOA a. b. 1 1 1 1 1\n@ 60 IN NS a.\n");
    let is_soa = line.split(' ').nth(3) == Some("SOA");
    let (apex, text) = match (is_soa, line.split_once(' ')) {
        (true, Some((owner, _))) => {
            (Name::parse(owner, &root).expect("a name"), format!("{line}\n@ 60 IN NS a.\n"))
        }
        _ => (root, format!("@ 60 IN {soa}{line}\n")),
    };
    let read = read_zone(&apex, "line", &text, &mut |_| Err(String::new()));
    let zone = read.zone.unwrap_or_else(|| panic!("{line}: {:?}", read.findings));
    let found = zone.records().find(|found| {
        is_soa == (found.rtype == 6) && (found.rtype != 2 || found.data != b"\x01a\0")
    });
    let found = found.unwrap_or_else(|| panic!("{line} is no record"));
    let owner = found.owner.labels().flat_map(|label| label.iter().copied().chain([b'.']));
    let mut owner: Vec<u8> = owner.map(|byte| byte.to_ascii_lowercase()).collect();
    owner.push(b'.');
    (owner, found.rtype, found.data.to_ascii_lowercase())
}

fn query(name: &Name, rtype: u16) -> Vec<u8> {
    let mut query = vec![0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    query.extend(name.wire());
    query.extend(rtype.to_be_bytes());
    query.extend([0, 1]);
    query
}

fn ours(zone: &str, name: &Name, rtype: u16) -> Option<Answer> {
    let soa = zone.lines().find(|line| line.contains(" SOA"))?;
    let apex = Name::parse(soa.split_whitespace().next()?, &Name::root()).ok()?;
    let zone = read_zone(&apex, "zone", zone, &mut |_| Err(String::new())).zone?;
    let zones: Zones = [std::sync::Arc::new(zone)].into_iter().collect();
    let asker = Asker { address: [192, 0, 2, 1].into(), transport: Transport::Tcp, now: 0 };
    let mut out = Vec::new();
    respond(&zones, &Settings::default(), asker, &query(name, rtype), &mut out)?;
    Some(Answer::given(&out))
}

#[test]
fn answers_are_within_those_of_four_servers() {
    let Some(folder) = std::env::var_os("AFPA_FERRET") else {
        afpa_testkit::skip!("AFPA_FERRET names no folder of FerretDataset");
    };
    let folder = Path::new(&folder).join("ValidZoneFileTests");
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    let mut shown = 0;
    for entry in fs::read_dir(folder.join("ExpectedResponses")).expect("a folder").flatten() {
        let path = entry.path();
        let number = path.file_stem().and_then(|stem| stem.to_str()).expect("a name").to_owned();
        let zone =
            fs::read_to_string(folder.join(format!("ZoneFiles/{number}.txt"))).expect("a zone");
        let text = fs::read_to_string(&path).expect("a file");
        let cases: Value = serde_json::from_str(&text).expect("JSON");
        for case in cases.as_array().into_iter().flatten() {
            let word = |key: &str| case["Query"][key].as_str().expect("a word");
            let name = Name::parse(word("Name"), &Name::root()).expect("a name");
            let rtype: Rtype = word("Type").parse().expect("a type");
            let given = ours(&zone, &name, rtype.to_int()).map(Answer::without_servers);
            let groups = case["Expected Response"].as_array().expect("a list");
            let is_agreed = groups.len() == 1;
            let matching = groups.iter().find(|group| {
                let lines = group["Response"].as_array().expect("a list");
                given.as_ref() == Some(&Answer::expected(lines).without_servers())
            });
            let what = match (&given, matching) {
                (None, _) => "not served".to_owned(),
                (_, Some(_)) if is_agreed => "as all four".to_owned(),
                (_, Some(group)) => {
                    format!("as {}", group["Server/s"].as_str().unwrap_or_default())
                }
                (_, None) if is_agreed => "otherwise than all four".to_owned(),
                (_, None) => "otherwise than each of some".to_owned(),
            };
            if matching.is_none() && shown < 12 {
                shown += 1;
                println!("{number}: {} {}\n{zone}", word("Name"), word("Type"));
                println!("{}", serde_json::to_string_pretty(groups).expect("JSON"));
                println!(
                    "ours: {}",
                    given.map_or_else(|| "none".to_owned(), |given| given.shown())
                );
            }
            *counts.entry(what).or_default() += 1;
        }
    }
    println!("{counts:#?}");
    assert_eq!(counts.get("otherwise than all four"), None, "{counts:#?}");
}
