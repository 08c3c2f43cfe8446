//! The zones of FerretDataset (Kakarla and others, *SCALE*, NSDI 2022) through `afpa serve`: each answer is one that BIND, NSD, Knot or
//! PowerDNS gives, and where these agree, theirs. `AFPA_FERRET` names the dataset's folder; it is not part of this tree.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use afpa_tests::dns::soak_length;
use afpa_tests::ferret::FerretZone;
use domain::base::iana::Rtype;
use serde_json::Value;

use super::bed::Bed;
use super::message::{Answer, Question};

/// Owner, type and data of a record, in lower case.
type Line = (String, String, String);

/// The parts by which answers are compared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Parts {
    rcode: String,
    is_authoritative: bool,
    sections: [BTreeSet<Line>; 3],
}

/// A record as the dataset writes it, or as an answer is shown, where the class is left out.
fn line(text: &str) -> Line {
    let lower = text.to_lowercase().replace('"', "");
    let mut words = lower.split_whitespace().filter(|word| *word != "in");
    let name = |word: &str| word.strip_suffix('.').unwrap_or(word).to_owned();
    let owner = words.next().map(name).unwrap_or_default();
    let rtype = words.nth(1).unwrap_or_default().to_owned(); // behind the time to live
    (owner, rtype, words.map(name).collect::<Vec<_>>().join(" "))
}

impl Parts {
    fn given(answer: &Answer) -> Self {
        let of = |section: &BTreeSet<String>| section.iter().map(|text| line(text)).collect();
        Self {
            rcode: answer.rcode.clone(),
            is_authoritative: answer.aa,
            sections: [of(&answer.answer), of(&answer.authority), of(&answer.additional)],
        }
    }

    fn expected(lines: &[Value]) -> Self {
        let (mut parts, mut section) = (Self::default(), None);
        for text in lines.iter().filter_map(Value::as_str) {
            match text {
                ";QUESTION" => section = None,
                ";ANSWER" => section = Some(0),
                ";AUTHORITY" => section = Some(1),
                ";ADDITIONAL" => section = Some(2),
                _ => match (section, text.split_once(' ')) {
                    (Some(section), _) => {
                        parts.sections[section].insert(line(text));
                    }
                    (None, Some(("rcode", rcode))) => rcode.clone_into(&mut parts.rcode),
                    (None, Some(("flags", flags))) => {
                        parts.is_authoritative = flags.split(' ').any(|flag| flag == "AA");
                    }
                    _ => {}
                },
            }
        }
        parts
    }

    /// Without the zone's own name servers beside an answer, and their addresses: some servers leave them out (RFC 2181 asks for none
    /// of them).
    fn without_servers(mut self) -> Self {
        let [answer, authority, additional] = &mut self.sections;
        if !answer.is_empty() && self.is_authoritative {
            let targets = |lines: &BTreeSet<Line>| -> BTreeSet<String> {
                let of = lines.iter().filter(|(_, rtype, _)| rtype == "ns");
                of.map(|(_, _, data)| data.clone()).collect()
            };
            let (needed, dropped) = (targets(answer), targets(authority));
            authority.retain(|(_, rtype, _)| rtype != "ns");
            additional.retain(|(owner, ..)| needed.contains(owner) || !dropped.contains(owner));
        }
        self
    }
}

/// A zone with its questions, and what the four servers say.
struct Case {
    number: String,
    apex: String,
    zone: String,
    /// All names in it and in its questions, and all above them.
    names: BTreeSet<String>,
    questions: Vec<(Question, Vec<(String, Parts)>)>,
}

impl Case {
    fn of(zone: FerretZone) -> Self {
        let FerretZone { number, apex, text: zone, questions: told } = zone;
        let question = |told: &Value| {
            let word = |key: &str| told["Query"][key].as_str().expect("a word");
            let rtype: Rtype = word("Type").parse().expect("a type");
            let groups = told["Expected Response"].as_array().expect("a list").iter();
            let groups = groups.map(|group| {
                let lines = group["Response"].as_array().expect("a list");
                let servers = group["Server/s"].as_str().unwrap_or_default().to_owned();
                (servers, Parts::expected(lines).without_servers())
            });
            (Question::new(word("Name"), rtype.to_int()), groups.collect())
        };
        let questions: Vec<_> = told.iter().map(question).collect();
        let in_zone = zone.split_whitespace().filter(|word| word.ends_with('.'));
        let asked = questions.iter().map(|(question, _): &(Question, _)| question.name.as_str());
        let names = in_zone.chain(asked).flat_map(|name| {
            let name = name.to_lowercase();
            let starts: Vec<_> = std::iter::once(0)
                .chain(name.match_indices('.').map(|(at, _)| at + 1))
                .filter(|at| *at < name.len())
                .collect();
            starts.into_iter().map(|at| name[at..].to_owned()).collect::<Vec<_>>()
        });
        let names = names.collect();
        Self { number, apex, zone, names, questions }
    }
}

/// Zones that are served together: none has a name that lies in another one.
#[derive(Default)]
struct Turn {
    apexes: BTreeSet<String>,
    names: BTreeSet<String>,
    cases: Vec<Case>,
}

impl Turn {
    fn takes(&self, case: &Case) -> bool {
        !self.names.contains(&case.apex) && self.apexes.is_disjoint(&case.names)
    }

    fn add(&mut self, mut case: Case) {
        self.apexes.insert(case.apex.clone());
        self.names.append(&mut case.names);
        self.cases.push(case);
    }

    /// The largest come first.
    fn all(mut cases: Vec<Case>) -> Vec<Self> {
        let mut of_apex: BTreeMap<String, usize> = BTreeMap::new();
        for case in &cases {
            *of_apex.entry(case.apex.clone()).or_default() += 1;
        }
        cases.sort_by_key(|case| std::cmp::Reverse(of_apex.get(&case.apex).copied()));
        let mut turns: Vec<Self> = Vec::new();
        for case in cases {
            match turns.iter_mut().find(|turn| turn.takes(&case)) {
                Some(turn) => turn.add(case),
                None => {
                    let mut turn = Self::default();
                    turn.add(case);
                    turns.push(turn);
                }
            }
        }
        turns.sort_by_key(|turn| std::cmp::Reverse(turn.cases.len()));
        turns
    }

    /// Serves them, and asks by UDP, and where an answer is cut off by TCP.
    fn judge(&self, counts: &mut BTreeMap<String, u64>) {
        let zones: Vec<_> = self
            .cases
            .iter()
            .map(|case| (case.apex.trim_end_matches('.'), case.zone.as_str()))
            .collect();
        let bed = Bed::new(&zones, "", "[dns]\nrate = 0\n");
        for case in &self.cases {
            for (question, groups) in &case.questions {
                let mut given = question.ask(bed.dns);
                if given.tc {
                    given = question.ask_by_tcp(bed.dns);
                }
                let given = Parts::given(&given).without_servers();
                let matching = groups.iter().find(|(_, expected)| *expected == given);
                let what = match (matching, groups.len()) {
                    (Some(_), 1) => "as all four".to_owned(),
                    (Some((servers, _)), _) => format!("as {servers}"),
                    (None, 1) => {
                        panic!("{}: {question:?}: {given:#?}, {groups:#?}", case.number)
                    }
                    (None, _) => "otherwise than each of some".to_owned(),
                };
                *counts.entry(what).or_default() += 1;
            }
        }
    }
}

#[test]
fn answers_for_zones_of_every_shape_are_within_those_of_four_servers() {
    let Some(zones) = FerretZone::all() else {
        afpa_testkit::skip!("AFPA_FERRET names no folder of FerretDataset");
    };
    let cases: Vec<Case> = zones.map(Case::of).collect();
    let (count, turns, begun) = (cases.len(), Turn::all(cases), Instant::now());
    let (mut zones, mut counts) = (0, BTreeMap::new());
    for turn in turns.iter().take_while(|_| begun.elapsed() < soak_length(60)) {
        turn.judge(&mut counts);
        zones += turn.cases.len();
    }
    println!("{zones} of {count} zones, in {:?}: {counts:#?}", begun.elapsed());
    let (others, all) = (counts.get("otherwise than each of some"), counts.values().sum::<u64>());
    assert!(others.copied().unwrap_or(0) * 100 <= all, "{counts:#?}");
}
