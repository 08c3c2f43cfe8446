//! The socket generator on loopback, against a small server that is right, and one that is not.

mod origin;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use afpa_generator::{
    ClientSetup, Load, LogLimits, Measured, Workload, family, generators, replay,
};
use origin::Manners;

const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

fn client(to: SocketAddr) -> ClientSetup {
    let interface = "lo".into();
    ClientSetup {
        to,
        interface,
        first_source: LOOPBACK,
        sources: 1,
        core: 0,
        answers_at_once: false,
        ages: false,
    }
}

fn load(connections: u32, persistent: bool) -> Load {
    Load {
        connections,
        warm_up: Duration::from_millis(50),
        duration: Duration::from_millis(600),
        persistent,
        rate: None,
    }
}

fn run(to: SocketAddr, workload: &Workload, load: &Load) -> anyhow::Result<Measured> {
    let all = generators();
    let socket = all.iter().find(|generator| generator.name() == "socket").unwrap();
    let mut samples = 0;
    let measured = socket.run(&client(to), workload, load, &mut || samples += 1)?;
    assert_eq!(samples, 2);
    println!("{measured:?}");
    Ok(measured)
}

fn point(name: &str) -> Workload {
    family(name, &[], true).unwrap().remove(0)
}

#[test]
fn every_family_is_answered_with_and_without_keep_alive() {
    for name in ["webstone", "browser", "conditional", "specweb96", "proxy", "absent", "replay"] {
        let workload = point(name);
        for persistent in [true, false] {
            let (to, seen) = origin::start(LOOPBACK, &workload, Manners::default());
            let measured = run(to, &workload, &load(4, persistent)).unwrap();
            assert_eq!(measured.errors, 0, "{name}: {measured:?}");
            assert!(measured.requests > 20, "{name}: {measured:?}");
            assert!(seen.of(|s| &s.requests) >= measured.requests);
            if workload.all_requests().len() == 1 {
                assert!(measured.bytes > measured.body_bytes, "{measured:?}");
            }
            assert!(measured.latency.p50 > 1.0 && measured.latency.max < 1e6, "{measured:?}");
            if !persistent {
                let (closing, asked) = (seen.of(|s| &s.closing), seen.of(|s| &s.requests));
                assert!(closing + 4 >= asked, "{name}: {closing} of {asked}");
                assert!(measured.connections_opened + 4 >= measured.requests);
            } else if name != "replay" {
                assert_eq!(measured.connections_opened, 0, "{name}");
            }
        }
    }
}

#[test]
fn a_single_wrong_byte_is_an_error() {
    let workload = point("webstone");
    let manners = Manners { corrupt_every: 100, ..Manners::default() };
    let (to, seen) = origin::start(LOOPBACK, &workload, manners);
    let measured = run(to, &workload, &load(2, true)).unwrap();
    let expected = seen.of(|s| &s.requests) / 100;
    assert!(measured.errors > 0 && measured.errors.abs_diff(expected) <= 2, "{measured:?}");
    assert!(measured.complaints[0].contains("wrong content"), "{measured:?}");
    assert!(measured.complaints.len() <= 5);
}

#[test]
fn a_response_that_is_cut_short_is_an_error() {
    let workload = point("webstone");
    for persistent in [true, false] {
        let manners = Manners { cut_every: 50, ..Manners::default() };
        let (to, _) = origin::start(LOOPBACK, &workload, manners);
        let measured = run(to, &workload, &load(2, persistent)).unwrap();
        assert!(measured.errors > 0, "{measured:?}");
        assert!(measured.complaints[0].contains("cut short"), "{measured:?}");
    }
}

#[test]
fn a_server_that_is_wrong_from_the_start_is_no_measurement() {
    let workload = point("webstone");
    let manners = Manners { corrupt_every: 1, ..Manners::default() };
    let (to, _) = origin::start(LOOPBACK, &workload, manners);
    let error = format!("{:#}", run(to, &workload, &load(2, true)).unwrap_err());
    assert!(error.contains("wrong content"), "{error}");
}

#[test]
fn connections_that_end_between_requests_are_opened_again() {
    let workload = point("webstone");
    let manners = Manners { requests_per_connection: 10, ..Manners::default() };
    let (to, seen) = origin::start(LOOPBACK, &workload, manners);
    let measured = run(to, &workload, &load(3, true)).unwrap();
    assert_eq!(measured.errors, 0, "{measured:?}");
    let connections = seen.of(|s| &s.connections);
    assert!(connections >= seen.of(|s| &s.requests) / 10, "{connections}");
    assert!(measured.counts["raced"] > 0, "{measured:?}");
}

#[test]
fn an_open_loop_asks_at_its_rate() {
    let workload = point("webstone");
    let (to, _) = origin::start(LOOPBACK, &workload, Manners::default());
    for persistent in [true, false] {
        let load = Load {
            rate: Some(1_000.0),
            duration: Duration::from_millis(800),
            ..load(16, persistent)
        };
        // On a busy machine it may be kept from its rate, but not each time.
        let rates = (0..10).map(|_| {
            let measured = run(to, &workload, &load).unwrap();
            assert_eq!(measured.errors, 0, "{measured:?}");
            measured.requests_per_second()
        });
        let mut rates = rates.inspect(|rate| println!("{rate} requests a second"));
        assert!(rates.any(|rate| (800.0..1200.0).contains(&rate)));
    }
}

/// One connection, 20 ms a response: 50 requests a second, but 200 are due. The wait is counted.
#[test]
fn the_corrected_latency_counts_the_wait() {
    let workload = point("webstone");
    let manners = Manners { delay: Duration::from_millis(20), ..Manners::default() };
    let (to, _) = origin::start(LOOPBACK, &workload, manners);
    let load = Load { rate: Some(200.0), ..load(1, true) };
    let measured = run(to, &workload, &load).unwrap();
    let service = measured.service.unwrap();
    assert!(service.p50 > 15e3, "{service:?}");
    assert!(measured.latency.p50 > 2.0 * service.p50, "{measured:?}");
    assert!(measured.counts["unanswered"] > 20, "{measured:?}");
}

#[test]
fn a_log_s_connections_end_as_in_the_log() {
    let line = |client: char, second: u32| {
        format!("{client} - - [01/Sep/2001:00:00:{second:02} +0000] \"GET /x HTTP/1.0\" 200 10\n")
    };
    // Three requests, silence, one request; two clients alike.
    let times = [0, 1, 2, 40];
    let log: String =
        times.iter().flat_map(|second| ['a', 'b'].map(|client| line(client, *second))).collect();
    let workload = replay("test", log.as_bytes(), &LogLimits::default()).unwrap();
    let (to, seen) = origin::start(LOOPBACK, &workload, Manners::default());
    let measured = run(to, &workload, &load(4, true)).unwrap();
    assert_eq!(measured.errors, 0, "{measured:?}");
    let each = seen.of(|s| &s.requests) as f64 / seen.of(|s| &s.connections) as f64;
    assert!((1.8..2.2).contains(&each), "{each} requests a connection");
}

#[test]
fn a_server_that_is_gone_is_an_error_and_not_a_storm() {
    let workload = family("cold", &[], true).unwrap().remove(0);
    let free = std::net::TcpListener::bind((LOOPBACK, 0)).unwrap().local_addr().unwrap();
    let measured = run(free, &workload, &load(4, true)).unwrap();
    assert!((4..400).contains(&measured.errors), "{measured:?}");
    assert_eq!(measured.requests, 0);
    assert!(measured.complaints[0].contains("connect"), "{measured:?}");
}
