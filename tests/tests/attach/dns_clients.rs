//! Clients and resolvers as Debian has them, before each name server that is installed: they get what the server says, and the
//! kernel says most of it.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use afpa_netlab::Bed;
use afpa_testkit::aloud::say;
use afpa_testkit::eventually_within;
use afpa_tests::dns::{A, DnsAttached, DnsClient, DnsLab, NameServer, Query};
use afpa_tests::resolvers::Resolver;

const HOSTS: usize = 12;
const NXDOMAIN: u8 = 3;
/// Where resolvers listen in the client's namespace.
const RESOLVER: (Ipv4Addr, u16) = (Ipv4Addr::LOCALHOST, 5300);

fn zone() -> String {
    let mut zone = String::from(
        "$ORIGIN example.test.\n$TTL 3600\n@ IN SOA ns1 host 1 3600 600 86400 300\n@ IN NS ns1\nns1 IN A 10.77.0.1\n\
         @ IN MX 10 host1\ncname IN CNAME host1\n*.wild IN A 192.0.2.9\n",
    );
    let text = format!("\"{}\" ", "x".repeat(250));
    zone.push_str(&format!("big IN TXT {}\nhuge IN TXT {}\n", text.repeat(3), text.repeat(6)));
    for host in 0..HOSTS {
        zone.push_str(&format!(
            "host{host} IN A 198.51.100.{host}\nhost{host} IN AAAA 2001:db8::{host:x}\n"
        ));
    }
    zone
}

/// Runs a test before each server.
fn before_each(run: impl Fn(NameServer, &DnsLab)) {
    let all = NameServer::installed();
    if all.is_empty() {
        afpa_testkit::skip!("no name server is installed");
    }
    for kind in all {
        match DnsLab::new(kind, &zone()) {
            Ok(lab) => run(kind, &lab),
            Err(reason) => afpa_testkit::skip!("{reason}"),
        }
    }
}

/// Programs that ask one question, and their options.
const ASKERS: [(&str, &[&str]); 7] = [
    ("dig", &[]),
    ("dig", &["+noedns", "+nocookie"]),
    ("dig", &["+dnssec", "+nocookie", "+norecurse"]),
    ("kdig", &[]),
    ("kdig", &["+dnssec", "+bufsize=1232"]),
    ("drill", &[]),
    ("drill", &["-D"]),
];

/// Their questions; the last one's answer is too long for a datagram of theirs, or for any.
const ASKED: [(&str, &str); 7] = [
    ("host1.example.test", "A"),
    ("HOST2.Example.TEST", "AAAA"),
    ("example.test", "MX"),
    ("cname.example.test", "A"),
    ("a.wild.example.test", "A"),
    ("absent.example.test", "A"),
    ("huge.example.test", "TXT"),
];

/// An answer as a program prints it, without what is another one each time. Its lines are in order, for sets have none.
fn printed(
    lab: &DnsLab,
    (program, options): (&str, &[&str]),
    (name, kind): (&str, &str),
) -> String {
    let mut command = lab.bed().client().command(program);
    command.arg(format!("@{}", Bed::SERVER_V4)).args(options).args([name, kind]);
    let output = command.output().expect(program);
    let text = String::from_utf8_lossy(&output.stdout);
    let own = [";; Query time", ";; WHEN", ";; Time", ";; From", "; COOKIE", "; <<>>"];
    let lines = text.lines().filter(|line| !own.iter().any(|begin| line.starts_with(begin)));
    let lines = lines.map(|line| line.split("id: ").next().unwrap_or_default());
    let mut lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    lines.sort_unstable();
    assert!(lines.len() > 4, "{program} {options:?} {name}: {text}");
    lines.join("\n")
}

/// dig sends a cookie. BIND answers it with one of its own, which is its own affair.
#[test]
fn dig_kdig_and_drill_print_what_the_server_says() {
    let missing = |name: &&str| !std::path::Path::new("/usr/bin").join(name).exists();
    if let Some(name) = ["dig", "kdig", "drill"].iter().find(|name| missing(name)) {
        afpa_testkit::skip!("{name} is not installed");
    }
    before_each(|kind, lab| {
        let all: Vec<_> =
            ASKERS.iter().flat_map(|asker| ASKED.map(|asked| (*asker, asked))).collect();
        let of = |asker, asked| printed(lab, asker, asked);
        let expected: Vec<String> = all.iter().map(|(asker, asked)| of(*asker, *asked)).collect();
        let attached = lab.attach(&["--rate", "0"]);
        let (mut turns, mut answered) = (0, 0);
        while turns < 8 && answered < all.len() * 3 / 4 {
            let before = attached.answered();
            for ((asker, asked), expected) in all.iter().zip(&expected) {
                assert_eq!(&of(*asker, *asked), expected, "{kind:?}, {asker:?}, {asked:?}");
            }
            answered = (attached.answered() - before) as usize;
            attached.settle();
            turns += 1;
        }
        println!(
            "{kind:?}: {answered} of {} questions answered by the kernel in turn {turns}",
            all.len()
        );
        let least = if kind == NameServer::Bind { all.len() / 2 } else { all.len() * 3 / 4 };
        assert!(answered >= least, "{kind:?}: {answered}: {:#}", attached.statistics());
    });
}

#[test]
fn dnsperf_loses_no_answer() {
    if !std::path::Path::new("/usr/bin/dnsperf").exists() {
        afpa_testkit::skip!("dnsperf is not installed");
    }
    before_each(|kind, lab| {
        let mut questions = String::new();
        for number in 0..16 {
            // One of four is not there.
            questions.push_str(&format!("host{number}.example.test A\n"));
        }
        let file = lab.folder().join("questions");
        fs::write(&file, questions).expect("written");
        let attached = lab.attach(&["--rate", "0"]);
        let each: [&[&str]; 3] = [&[], &["-e"], &["-e", "-D"]];
        for options in each {
            eventually_within(Duration::from_secs(60), "the kernel answers dnsperf", || {
                let before = attached.answered();
                let mut command = lab.bed().client().command("dnsperf");
                command.args(["-s", &Bed::SERVER_V4.to_string(), "-n", "125", "-Q", "2000", "-d"]);
                let output = command.arg(&file).args(options).output().expect("dnsperf");
                let text = String::from_utf8_lossy(&output.stdout).into_owned();
                let said = |line: &str| {
                    assert!(text.contains(line), "{kind:?}, {options:?}, {line}: {text}")
                };
                said("Queries completed:    2000 (100.00%)");
                said("Response codes:       NOERROR 1500 (75.00%), NXDOMAIN 500 (25.00%)");
                let answered = attached.answered() - before;
                println!("{kind:?}, {options:?}: {answered} of 2000 answered by the kernel");
                answered > 1800
            });
        }
    });
}

/// The code of an answer, and whether it has such bytes.
fn gives(client: &mut DnsClient, name: &str, kind: u16, data: &[u8]) -> (u8, bool) {
    let query = Query { flags: 0x0100, ..Query::new(name, kind) };
    let answer = (0..5).find_map(|_| client.ask(&query.bytes())).expect("an answer");
    (answer[3] & 15, answer.windows(data.len()).any(|bytes| bytes == data))
}

fn ask_all(client: &mut DnsClient) {
    for host in 0..HOSTS as u8 {
        let name = format!("host{host}.example.test");
        assert_eq!(gives(client, &name, A, &[198, 51, 100, host]), (0, true), "{name}");
    }
    assert_eq!(gives(client, "cname.example.test", A, &[198, 51, 100, 1]), (0, true));
    assert_eq!(gives(client, "a.wild.example.test", A, &[192, 0, 2, 9]), (0, true));
    assert_eq!(gives(client, "absent.example.test", A, b"absent").0, NXDOMAIN);
}

fn resolves(lab: &DnsLab, attached: &DnsAttached, (kind, resolver): (NameServer, Resolver)) {
    let folder = tempfile::tempdir().expect("a folder");
    let (at, server) = (SocketAddr::from(RESOLVER), SocketAddr::from((Bed::SERVER_V4, 53)));
    let client = lab.bed().client();
    let started = resolver.start(Some(client), folder.path(), (at, server), "example.test");
    let mut started = match started {
        Ok(started) => started,
        Err(reason) => return say("SKIP", &reason),
    };
    let mut client = lab.client_of(at);
    client.set_patience(Duration::from_millis(500));
    eventually_within(Duration::from_secs(60), "the resolver answers", || {
        assert!(started.is_alive(), "{resolver:?} has ended");
        let query = Query { flags: 0x0100, ..Query::new("ns1.example.test", A) };
        client.ask(&query.bytes()).is_some_and(|answer| (answer[3] & 15, answer[7]) == (0, 1))
    });
    client.set_patience(Duration::from_secs(10));
    ask_all(&mut client);
    // BIND's answers to names with capitals are its own alone, as they may differ in compression.
    if (kind, resolver) == (NameServer::Bind, Resolver::Unbound) {
        return;
    }
    let mut turns = 0;
    eventually_within(Duration::from_secs(60), "the kernel answers the resolver", || {
        let before = attached.answered();
        ask_all(&mut client);
        attached.settle();
        turns += 1;
        attached.answered() - before >= HOSTS as u64
    });
    println!("{kind:?}, {resolver:?}: answered by the kernel in turn {turns}");
}

#[test]
fn resolvers_get_the_kernels_answers() {
    before_each(|kind, lab| {
        let attached = lab.attach(&["--rate", "0"]);
        for resolver in Resolver::ALL {
            resolves(lab, &attached, (kind, resolver));
        }
    });
}
