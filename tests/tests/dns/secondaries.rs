//! Secondaries: AFPA gives the zone to those in `transfer` alone, and has those in `notify` ask at once.

use std::fs;
use std::io::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};

use afpa_testkit::server::free_address;
use afpa_testkit::{Running, eventually};

use super::bed::{Bed, ZONE, are_here, readable_folder, run, said, signed};
use super::message::{Answer, Question, exchange, read_framed};

#[test]
fn who_is_named_gets_the_whole_zone_and_nobody_else() {
    if !are_here(&["dig"]) {
        return;
    }
    let bed = Bed::new(&[("example.org", ZONE)], "transfer = [\"127.0.0.1\"]\n", "");
    let (at, port) = (format!("@{}", bed.dns.ip()), bed.dns.port().to_string());
    let arguments = [&at, "-p", &port, "example.org", "AXFR", "+noall", "+answer"];
    let zone = said(&run("dig", &arguments));
    let records =
        |text: &str| text.lines().filter(|line| !line.starts_with(';') && !line.is_empty()).count();
    // The lines of the file but $TTL, and the SOA once more.
    assert_eq!(records(&zone), ZONE.lines().count(), "{zone}");
    let other = said(&run("dig", &[&["-b", "127.0.0.9"], &arguments[..]].concat()));
    assert_eq!(records(&other), 0, "{other}");
    let changes = ["-b", "127.0.0.9", &at, "-p", &port, "example.org", "IXFR=6", "+tcp"];
    let other = said(&run("dig", &changes));
    assert!(records(&other) == 0 && other.contains("Transfer failed"), "{other}");
    let by_udp = Question::new("example.org", 252).ask(bed.dns);
    assert_eq!(by_udp.rcode, "NOTIMP");
    assert_eq!(bed.stats()["dns"]["transfers"], 1);
}

#[test]
fn a_slow_secondary_holds_one_message() {
    const SLOW: usize = 12;
    let line = format!("TXT{}\n", format!(" \"{}\"", "x".repeat(250)).repeat(4));
    let many: String = (0..12_000).map(|n| format!("t{n} {line}")).collect();
    let zone = format!("{ZONE}{many}");
    let bed = Bed::new(&[("example.org", &zone)], "transfer = [\"127.0.0.1\"]\n", "");
    let question = Question::new("example.org", 252).bytes();
    let length = u16::try_from(question.len()).expect("short").to_be_bytes();
    let begin = || {
        let mut stream = TcpStream::connect(bed.dns).expect("connected");
        stream.write_all(&[&length, question.as_slice()].concat()).expect("written");
        let first = read_framed(&mut stream);
        assert!(first[3] & 15 == 0 && first.len() > 10_000);
        stream
    };
    let process = bed.server.process();
    let one = begin();
    let before = process.resident().expect("memory");
    let slow: Vec<TcpStream> = (0..SLOW).map(|_| begin()).collect();
    let grown = process.resident().expect("memory").saturating_sub(before);
    assert!(grown < many.len() as u64, "{grown} bytes for {SLOW} slow transfers of {}", many.len());
    drop((one, slow));
}

/// Twenty versions, each with a transfer that nobody reads: most of them are let go.
#[test]
fn slow_secondaries_hold_few_versions() {
    const VERSIONS: u32 = 20;
    let line = format!("TXT{}\n", format!(" \"{}\"", "x".repeat(250)).repeat(4));
    let many: String = (0..6_000).map(|n| format!("t{n} {line}")).collect();
    let of = |serial: u32| {
        let zone = ZONE.replace("hostmaster 7 ", &format!("hostmaster {serial} "));
        assert!(serial == 7 || zone != ZONE);
        format!("{zone}{many}")
    };
    let bed = Bed::new(&[("example.org", &of(7))], "transfer = [\"127.0.0.1\"]\n", "");
    let question = Question::new("example.org", 252).bytes();
    let length = u16::try_from(question.len()).expect("short").to_be_bytes();
    let begin = || {
        let mut stream = TcpStream::connect(bed.dns).expect("connected");
        stream.write_all(&[&length, question.as_slice()].concat()).expect("written");
        assert!(read_framed(&mut stream).len() > 10_000);
        stream
    };
    let process = bed.server.process();
    let mut slow = vec![begin()];
    let before = process.resident().expect("memory");
    for version in 1..=VERSIONS {
        let serial = 7 + version;
        fs::write(bed.file("example.org"), of(serial)).expect("written");
        let wanted = serial.to_string();
        eventually("the new version is served", || serial_of(bed.dns) == Some(wanted.clone()));
        slow.push(begin());
        let held = bed.stats()["dns"]["older_versions_held"].as_u64().expect("a number");
        assert!(held <= 4, "{held}");
    }
    let grown = process.resident().expect("memory").saturating_sub(before);
    let dns = bed.stats()["dns"].clone();
    println!("{grown} bytes for {VERSIONS} further versions of {}: {dns:#}", many.len());
    // Four older ones, the current one, and the room that reading the next one takes.
    assert!(grown < 11 * many.len() as u64, "{grown} bytes: {dns:#}");
    assert_eq!(dns["transfers_ended"], VERSIONS - 4, "{dns:#}");
    let bytes = dns["older_versions_held_bytes"].as_u64().expect("a number");
    assert!(bytes > 4 * many.len() as u64 / 2, "{bytes}");
    let zone = &dns["zones"][0];
    assert_eq!((&zone["transfers"], &zone["transfers_going_on"]), (&21.into(), &5.into()));
    drop(slow);
    eventually("nothing is held any more", || bed.stats()["dns"]["older_versions_held"] == 0);
}

#[test]
fn knot_as_a_secondary_has_each_version_soon() {
    let text = signed(ZONE, &["-n", "-s", "abcd", "-t", "3"]);
    let Some(text) = text.filter(|_| are_here(&["knotd"])) else { return };
    let at = free_address();
    let more = format!("transfer = [\"127.0.0.0/8\"]\nnotify = [\"{at}\"]\n");
    let bed = Bed::new(&[("example.org", &text)], &more, "");
    let folder = readable_folder();
    let place = folder.path().display();
    let configuration = format!(
        "server:\n    listen: {}@{}\n    rundir: {place}\nlog:\n  - target: stderr\n    any: warning\n\
         database:\n    storage: {place}\nremote:\n  - id: primary\n    address: {}@{}\n\
         acl:\n  - id: told\n    address: 127.0.0.0/8\n    action: notify\n\
         zone:\n  - domain: example.org\n    file: {place}/zone\n    master: primary\n    acl: told\n",
        at.ip(),
        at.port(),
        bed.dns.ip(),
        bed.dns.port()
    );
    let file = folder.path().join("knot.conf");
    fs::write(&file, configuration).expect("written");
    let mut command = Command::new("knotd");
    command.arg("-c").arg(file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let _knot = Running::start(&mut command);
    eventually("Knot has the zone", || serial_of(at).as_deref() == Some("7"));
    let newer = text.replace(" 7 3600 900 ", " 8 3600 900 ");
    assert_ne!(newer, text);
    fs::write(bed.file("example.org"), newer).expect("written");
    eventually("Knot has the new version", || serial_of(at).as_deref() == Some("8"));
}

fn serial_of(at: SocketAddr) -> Option<String> {
    let answer = Answer::read(&exchange(at, &Question::new("example.org", 6).bytes())?).answer;
    answer.first()?.split(' ').nth(5).map(str::to_owned)
}
