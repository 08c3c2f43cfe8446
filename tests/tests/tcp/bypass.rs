//! Connections that rest: requests that are never for the kernel, then some that would be.
//! LIFECYCLE.md, "When a connection rests".

use std::net::IpAddr;
use std::time::Duration;

use afpa_bpf::{BYPASS_AFTER, Reason, Settings};
use afpa_netlab::inject::Impairment;
use afpa_netlab::{Bed, Path};
use afpa_testkit::Client;
use afpa_tests::tcp::{Lab, Plan, blank_date, large, put};

/// Connections rest after so many passes, however soon they come.
fn at_once(bypass_after: u32) -> Plan {
    let bypass_time = Duration::ZERO;
    Plan {
        settings: Settings { bypass_after, bypass_time, ..Settings::default() },
        ..Plan::default()
    }
}

/// Every byte of a reply, its Date aside.
fn bytes(client: &mut Client, path: &str) -> Vec<u8> {
    let request = format!("GET {path} HTTP/1.1\r\nHost: server\r\n\r\n");
    blank_date(&client.exchange_bytes(request)).expect("a reply with a Date")
}

#[test]
fn after_two_hundred_misses_nginx_answers_what_is_pinned() {
    let Some(lab) = Lab::with_sample(at_once(BYPASS_AFTER)) else { return };
    for server in [IpAddr::from(Bed::SERVER_V4), IpAddr::from(Bed::SERVER_V6)] {
        let (answered, rested) = (lab.count(Reason::Answered), lab.count(Reason::FlowBypassed));
        let mut client = lab.connect(server);
        let first = bytes(&mut client, "/user.html");
        for _ in 0..200 {
            assert_eq!(bytes(&mut client, "/user.html"), first);
        }
        assert_eq!(lab.count(Reason::FlowBypassed), rested + 1);
        // A query is never pinned, and nothing to nginx: its own answer on any connection.
        let mut other = lab.connect(server);
        let own = bytes(&mut other, "/kernel.html?query");
        for _ in 0..10 {
            assert_eq!(bytes(&mut client, "/kernel.html"), own);
            assert_eq!(client.get("/large.html").body, large());
        }
        assert_eq!(lab.count(Reason::Answered), answered, "{}", lab.tally());
        lab.converse(&mut other);
        lab.converse(&mut lab.connect(server));
        client.end();
        other.end();
    }
}

/// Misses that come between answers, however many: the connection stays.
#[test]
fn not_as_long_as_there_are_answers() {
    let Some(lab) = Lab::with_sample(at_once(BYPASS_AFTER)) else { return };
    let mut client = lab.client();
    for _ in 0..10 {
        for _ in 1..BYPASS_AFTER {
            assert_eq!(client.get("/user.html").body, b"from nginx");
        }
        assert!(client.get("/kernel.html").is_from_kernel());
    }
    assert_eq!(lab.count(Reason::FlowBypassed), 0, "{}", lab.tally());
    client.end();
}

/// Both sequence spaces, selective acknowledgements and all, over a network that loses and reorders.
#[test]
fn drifted_ones_through_a_bad_network() {
    let path = Path::Through(Box::default());
    let Some(lab) = Lab::with_sample(Plan { path, ..at_once(8) }) else { return };
    let mut clients: Vec<Client> = (0..4).map(|_| lab.client()).collect();
    for client in &mut clients {
        lab.converse(client); // it drifts
        for _ in 0..8 {
            assert_eq!(client.get("/user.html").body, b"from nginx");
        }
    }
    assert_eq!(lab.count(Reason::FlowBypassed), 4, "{}", lab.tally());
    let bad = Impairment {
        loss: 0.03,
        duplicate: 0.03,
        reorder: 0.05,
        hold: Duration::from_millis(3),
        ..Impairment::default()
    };
    lab.impair(bad.clone(), bad);
    let content: Vec<u8> = (0..150_000).map(|at: usize| (at * 7 + at / 251) as u8).collect();
    std::thread::scope(|scope| {
        for (number, client) in clients.iter_mut().enumerate() {
            let (lab, content) = (&lab, &content);
            scope.spawn(move || {
                for round in 0..4 {
                    assert_eq!(client.get("/kernel.html").body, b"from nginx, the pinned one");
                    assert!(client.get("/large.html").body == large(), "round {round}");
                    client.send(put(&format!("of-{number}"), content));
                    assert!((200..300).contains(&client.receive().status));
                    let stored = std::fs::read(lab.file(&format!("upload/of-{number}")));
                    assert!(stored.expect("stored") == *content, "round {round}");
                }
            });
        }
    });
    lab.impair(Impairment::default(), Impairment::default());
    clients.into_iter().for_each(Client::end);
    assert_eq!(lab.count(Reason::FlowBypassed), 4, "{}", lab.tally());
}
