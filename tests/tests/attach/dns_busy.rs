//! `afpa attach --dns` before a server whose queue is never empty: the names that its clients ask for are learnt all the same.

use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddrV4};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use afpa_netlab::Bed;
use afpa_netlab::queries::{Names, Queries, QueryOptions, Question, address, label};
use afpa_tests::dns::{DnsLab, NameServer};

const NAMES: u32 = 4096;
/// As many as the client can keep: each question waits behind that many.
const OUTSTANDING: u32 = 512;
/// So many times as long as it takes on a machine that does nothing else; one question after the other took longer.
const PATIENCE: Duration = Duration::from_secs(60);

/// Each answer has the set of the zone's name servers, whose order has to be known.
fn zone() -> String {
    let mut zone = String::from(
        "$ORIGIN example.test.\n$TTL 3600\n@ IN SOA ns1 host 1 3600 600 86400 300\n@ IN NS ns1\n@ IN NS ns2\nns1 IN A 10.77.0.1\nns2 IN A 10.77.0.2\n",
    );
    for number in 0..NAMES {
        writeln!(zone, "{} IN A {}", label(number), address(number)).expect("a String");
    }
    zone
}

#[test]
fn names_are_learnt_while_clients_keep_the_server_busy() {
    let lab = match DnsLab::new(NameServer::Nsd, &zone()) {
        Ok(lab) => lab,
        Err(reason) => afpa_testkit::skip!("{reason}"),
    };
    let IpAddr::V4(from) = Bed::client_address(Bed::SERVER_V4.into(), 0) else {
        unreachable!("it is of the family of the server's")
    };
    let options = QueryOptions {
        to: SocketAddrV4::new(Bed::SERVER_V4, 53),
        interface: Bed::DEVICE.into(),
        from,
        outstanding: OUTSTANDING,
        question: Question::new("example.test", Names::Drawn(NAMES)),
        found: true,
    };
    let attached = lab.attach(&["--rate", "0"]);
    let is_over = AtomicBool::new(false);
    let (least, begun) = (u64::from(NAMES) * 9 / 10, Instant::now());
    std::thread::scope(|scope| {
        let load = scope.spawn(|| {
            let ask = || {
                let (_, expected) = options.read_some().expect("right answers");
                let mut queries = Queries::start(&options, expected).expect("a load");
                let mut complaint = None;
                while !is_over.load(Ordering::Relaxed) {
                    let measured = queries.measure(Duration::from_millis(100), || Ok(()));
                    complaint = complaint.or(measured.expect("a tally").0.complaint());
                }
                complaint
            };
            lab.bed().client().run(ask).expect("the namespace")
        });
        while attached.pinned() < least && begun.elapsed() < PATIENCE && !load.is_finished() {
            std::thread::sleep(Duration::from_millis(100));
        }
        is_over.store(true, Ordering::Relaxed);
        assert_eq!(load.join().expect("it ends"), None, "all answers are right");
    });
    let (pinned, took) = (attached.pinned(), begun.elapsed());
    println!("{pinned} of {NAMES} names learnt in {took:?}");
    assert!(pinned >= least, "{pinned} in {took:?}: {:#}", attached.statistics());
}
