//! Real clients: those of operators, and resolvers.

use std::fs;
use std::io::Write as _;
use std::net::{SocketAddr, TcpStream};

use afpa_testkit::aloud::say;
use afpa_testkit::eventually;
use afpa_testkit::server::free_address;
use afpa_tests::resolvers::Resolver;

use super::bed::{Bed, ZONE, are_here, run, said};
use super::message::{Answer, Question, read_framed};

fn bed() -> Bed {
    Bed::new(&[("example.org", ZONE)], "", "")
}

#[test]
fn dig_gets_a_cookie_that_is_good_and_the_case_that_it_asked_in() {
    if !are_here(&["dig"]) {
        return;
    }
    let bed = bed();
    let (at, port) = (format!("@{}", bed.dns.ip()), bed.dns.port().to_string());
    let out = said(&run("dig", &[&at, "-p", &port, "+cookie", "wWw.Example.org", "A"]));
    assert!(
        out.contains("(good)") && out.contains("wWw.Example.org.\t") && out.contains("192.0.2.3"),
        "{out}"
    );
    let cookie = out.lines().find_map(|line| line.trim().strip_prefix("; COOKIE: "));
    let cookie = cookie.and_then(|rest| rest.split(' ').next()).expect("a cookie");
    let again =
        said(&run("dig", &[&at, "-p", &port, &format!("+cookie={cookie}"), "www.example.org"]));
    assert!(again.contains("NOERROR") && again.contains("(good)"), "{again}");
    let chaos = said(&run("dig", &[&at, "-p", &port, "version.bind", "TXT", "CH"]));
    assert!(chaos.contains("REFUSED"), "{chaos}");
}

#[test]
fn kdig_and_drill_get_long_answers_by_tcp() {
    if !are_here(&["kdig", "drill"]) {
        return;
    }
    let bed = bed();
    let (at, port) = (format!("@{}", bed.dns.ip()), bed.dns.port().to_string());
    let kdig = said(&run("kdig", &[&at, "-p", &port, "+noedns", "long.example.org", "TXT"]));
    assert!(kdig.contains("(TCP)") && kdig.contains("ANSWER: 1;"), "{kdig}");
    let https = said(&run("kdig", &[&at, "-p", &port, "www.example.org", "HTTPS"]));
    assert!(https.contains("alpn=\"h2,h3\"") || https.contains("alpn=h2,h3"), "{https}");
    let drill = said(&run("drill", &["-p", &port, &at, "-t", "long.example.org", "TXT"]));
    assert!(drill.contains("ANSWER: 1,"), "{drill}");
}

/// RFC 7766: a client may send several questions before it reads an answer, and they may come in any pieces.
#[test]
fn questions_on_a_connection_may_follow_each_other() {
    let bed = bed();
    let mut stream = TcpStream::connect(bed.dns).expect("connected");
    let mut bytes = Vec::new();
    for name in ["www.example.org", "nothing.example.org", "long.example.org"] {
        let question = Question::new(name, 16).bytes();
        bytes.extend_from_slice(&u16::try_from(question.len()).expect("short").to_be_bytes());
        bytes.extend_from_slice(&question);
    }
    let (first, rest) = bytes.split_at(50);
    stream.write_all(first).expect("written");
    stream.flush().expect("flushed");
    stream.write_all(rest).expect("written");
    let codes: Vec<String> =
        (0..3).map(|_| Answer::read(&read_framed(&mut stream)).rcode).collect();
    assert_eq!(codes, ["NOERROR", "NXDOMAIN", "NOERROR"]);
}

#[test]
fn on_an_address_that_stands_for_all_the_answer_comes_from_the_one_that_was_asked() {
    let port = free_address().port();
    // The client's socket is connected, so an answer from another address would not reach it.
    let _bed = Bed::listening(&[("example.org", ZONE)], &format!("0.0.0.0:{port}"));
    for ip in ["127.0.0.1", "127.3.2.1"] {
        let at: SocketAddr = format!("{ip}:{port}").parse().expect("an address");
        assert_eq!(Question::new("www.example.org", 1).ask(at).answer.len(), 1, "{ip}");
        assert_eq!(Question::new("www.example.org", 1).ask_by_tcp(at).answer.len(), 1, "{ip}");
    }
}

#[test]
fn unbound_resolves_names_of_the_zone() {
    resolves(Resolver::Unbound);
}

#[test]
fn dnsmasq_forwards_to_the_zone() {
    resolves(Resolver::Dnsmasq);
}

#[test]
fn systemd_resolved_forwards_to_the_zone() {
    resolves(Resolver::Resolved);
}

fn resolves(resolver: Resolver) {
    let (bed, at) = (bed(), free_address());
    match resolver.start(None, bed.folder.path(), (at, bed.dns), "example.org") {
        Ok(_running) => answers_of_each_kind(at),
        Err(reason) => say("SKIP", &reason),
    }
}

/// The resolver gives answers of each kind.
fn answers_of_each_kind(at: SocketAddr) {
    let recursive = |name: &str, rtype| {
        let mut bytes = Question::new(name, rtype).bytes();
        bytes[2] |= 1;
        super::message::exchange(at, &bytes).map(|bytes| Answer::read(&bytes))
    };
    eventually("the resolver answers", || {
        recursive("www.example.org", 1).is_some_and(|answer| answer.answer.len() == 1)
    });
    let answer = |name, rtype| recursive(name, rtype).expect("an answer");
    assert_eq!(answer("chain.example.org", 1).answer.len(), 3);
    assert_eq!(answer("nothing.example.org", 1).rcode, "NXDOMAIN");
    assert_eq!(answer("q.w2.example.org", 1).answer.len(), 2);
    assert_eq!(answer("www.example.org", 28).rcode, "NOERROR");
}

#[test]
fn dnsperf_loses_no_answer() {
    if !are_here(&["dnsperf"]) {
        return;
    }
    // The limit of a prefix would take some of them.
    let bed = Bed::new(&[("example.org", ZONE)], "", "[dns]\nrate = 0\n");
    let file = bed.folder.path().join("questions");
    fs::write(
        &file,
        "www.example.org A\nchain.example.org A\nexample.org MX\nnothing.example.org A\n",
    )
    .expect("written");
    let (file, ip) = (file.display().to_string(), bed.dns.ip().to_string());
    let port = bed.dns.port().to_string();
    let each: [&[&str]; 3] = [&[], &["-e", "-D"], &["-m", "tcp"]];
    for options in each {
        let usual = ["-s", &ip, "-p", &port, "-d", &file, "-n", "500", "-Q", "2000"];
        let text = said(&run("dnsperf", &[&usual[..], options].concat()));
        assert!(text.contains("Queries completed:    2000 (100.00%)"), "{options:?}: {text}");
        let codes = "Response codes:       NOERROR 1500 (75.00%), NXDOMAIN 500 (25.00%)";
        assert!(text.contains(codes), "{options:?}: {text}");
    }
}
