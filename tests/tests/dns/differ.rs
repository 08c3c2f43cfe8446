//! The same zones before Knot and NSD: the answers are equal, as sets of records.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};

use afpa_testkit::server::free_address;
use afpa_testkit::{Running, eventually};

use super::bed::{Bed, ZONE, are_here, readable_folder, signed};
use super::message::{Answer, Question, exchange};

const NAMES: &str = include_str!("names");
/// NSEC and NSEC3 are left out: Knot and NSD differ about them at the name of a CNAME. SVCB as well: Knot adds proofs that
/// its target has no further addresses.
const TYPES: [u16; 19] =
    [1, 2, 5, 6, 12, 15, 16, 28, 33, 39, 43, 48, 51, 52, 65, 99, 257, 65280, 37];
const EDNS: [Option<(u16, bool)>; 5] =
    [None, Some((512, false)), Some((1232, false)), Some((1232, true)), Some((4096, true))];

#[test]
fn an_unsigned_zone_is_answered_as_by_knot_and_nsd() {
    // Knot keeps the DS of a zone below to itself where the zone is not signed.
    let without: Vec<&str> = ZONE.lines().filter(|line| !line.starts_with("sec DS ")).collect();
    compare(Some(without.join("\n") + "\n"));
}

#[test]
fn a_zone_signed_with_nsec_is_answered_as_by_knot_and_nsd() {
    compare(signed(ZONE, &[]));
}

#[test]
fn a_zone_signed_with_nsec3_is_answered_as_by_knot_and_nsd() {
    compare(signed(ZONE, &["-n", "-s", "abcd", "-t", "3"]));
}

#[test]
fn a_zone_signed_with_nsec3_and_opt_out_is_answered_as_by_knot_and_nsd() {
    compare(signed(ZONE, &["-n", "-p", "-t", "0"]));
}

/// `None`: it could not be signed, which has been said.
fn compare(zone: Option<String>) {
    let Some(zone) = zone.filter(|_| are_here(&["knotd", "nsd"])) else { return };
    let bed = Bed::new(&[("example.org", &zone)], "", "[dns]\nrate = 0\n");
    let folder = readable_folder();
    let (knot, nsd) = (Knot::start(folder.path(), &zone), Nsd::start(folder.path(), &zone));
    let mut count = 0;
    for name in NAMES.lines() {
        for rtype in TYPES {
            for edns in EDNS {
                let question = Question { name: name.to_owned(), rtype, edns };
                let ours = question.ask(bed.dns);
                let theirs = question.ask(knot.at);
                assert_eq!(without_cut(ours.clone()), without_cut(theirs), "Knot, {question:?}");
                // NSD proves for the name of a wildcard itself that it is not there.
                if !name.starts_with("*.") {
                    let theirs = question.ask(nsd.at);
                    assert_eq!(answer_alone(ours), answer_alone(theirs), "NSD, {question:?}");
                }
                count += 1;
            }
        }
    }
    assert!(count > 4000, "{count} questions");
}

/// An answer that was cut has no records with us, and some with others.
fn without_cut(answer: Answer) -> Answer {
    if !answer.tc {
        return answer;
    }
    let none = Default::default;
    Answer { answer: none(), authority: none(), additional: none(), aa: false, ..answer }
}

/// NSD adds name servers to answers, and addresses of its own choice.
fn answer_alone(answer: Answer) -> Answer {
    let mut answer = without_cut(answer);
    answer.additional.clear();
    if !answer.answer.is_empty() {
        answer.authority.retain(|line| !line.contains(" NS "));
    }
    answer
}

struct Knot {
    pub(super) at: SocketAddr,
    _process: Running,
}

impl Knot {
    fn start(folder: &Path, zone: &str) -> Self {
        let (folder, at) = (folder.join("knot"), free_address());
        fs::create_dir(&folder).expect("made");
        fs::write(folder.join("zone"), zone).expect("written");
        let place = folder.display();
        let text = format!(
            "server:\n    listen: {}@{}\n    rundir: {place}\n    udp-max-payload: 1232\n\
             log:\n  - target: stderr\n    any: warning\ndatabase:\n    storage: {place}\n\
             zone:\n  - domain: example.org\n    file: {place}/zone\n    semantic-checks: off\n",
            at.ip(),
            at.port()
        );
        let file = folder.join("knot.conf");
        fs::write(&file, text).expect("written");
        let process = started(Command::new("knotd").arg("-c").arg(file), at);
        Self { at, _process: process }
    }
}

pub(super) struct Nsd {
    pub(super) at: SocketAddr,
    _process: Running,
}

impl Nsd {
    pub(super) fn start(folder: &Path, zone: &str) -> Self {
        let (folder, at) = (folder.join("nsd"), free_address());
        fs::create_dir(&folder).expect("made");
        fs::write(folder.join("zone"), zone).expect("written");
        let place = folder.display();
        let text = format!(
            "server:\n  ip-address: {}@{}\n  username: \"\"\n  zonesdir: \"{place}\"\n  database: \"\"\n\
             \n  pidfile: \"{place}/pid\"\n  xfrdfile: \"{place}/xfrd\"\n  zonelistfile: \"{place}/list\"\n\
             \n  xfrdir: \"{place}\"\n  ipv4-edns-size: 1232\n  rrl-ratelimit: 0\n\
             remote-control:\n  control-enable: no\nzone:\n  name: example.org\n  zonefile: zone\n",
            at.ip(),
            at.port()
        );
        let file = folder.join("nsd.conf");
        fs::write(&file, text).expect("written");
        let process = started(Command::new("nsd").arg("-d").arg("-c").arg(file), at);
        Self { at, _process: process }
    }
}

fn started(command: &mut Command, at: SocketAddr) -> Running {
    let process =
        Running::start(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()));
    let soa = Question::new("example.org", 6);
    eventually("the other server answers", || {
        exchange(at, &soa.bytes()).is_some_and(|bytes| !Answer::read(&bytes).answer.is_empty())
    });
    process
}
