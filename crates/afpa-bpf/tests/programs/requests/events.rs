//! The events by which user mode learns of an answered request.

use afpa_bpf::{Settings, SiteCount, kind};

use super::outcome::world;
use crate::support::{ETAG, LISTENER, SERVER_V4, SITE};

#[test]
fn events_name_what_was_answered() {
    let Some((world, fast_path)) = world(Settings::default()) else { return };
    let events = fast_path.reports.events().expect("a ring buffer");
    let mut client = world.connect(SERVER_V4);
    let whole = client.exchange_bytes("GET /kernel.html HTTP/1.1\r\nHost: server\r\n\r\n");
    client.exchange("HEAD /kernel.html HTTP/1.1\r\nHost: server\r\n\r\n");
    client.exchange(format!(
        "GET /kernel.html HTTP/1.1\r\nHost: server\r\nIf-None-Match: {ETAG}\r\n\r\n"
    ));
    let seen = events.drain().expect("events");
    assert_eq!(
        seen.iter().map(|event| event.kind).collect::<Vec<_>>(),
        [kind::WHOLE, kind::HEAD, kind::NOT_MODIFIED]
    );
    assert_eq!(seen[0].length as usize, whole.len());
    assert!(
        seen.iter().all(|event| (event.listener, event.site, event.weight) == (LISTENER, SITE, 1))
    );
    assert_eq!(seen[0].flow.client_port, client.tcp().local_addr().expect("an address").port());
    assert!(seen[1].head == 1 && seen[0].version == seen[1].version);
    let count = fast_path.stats.site_count(SITE).expect("counts");
    assert_eq!((count.whole, count.not_modified), (2, 1));
    assert_eq!(fast_path.stats.site_count(SITE + 1).expect("counts"), SiteCount::default());
}

/// An event leads to the request's header block, which has the rest of the request, for as long as it is remembered.
#[test]
fn events_lead_to_header_blocks() {
    let settings = Settings { header_blocks: 1, ..Settings::default() };
    let Some((world, fast_path)) = world(settings) else { return };
    let events = fast_path.reports.events().expect("a ring buffer");
    let mut client = world.connect(SERVER_V4);
    let blocks = ["Host: a\r\nReferer: /1\r\n\r\n", "Host: b\r\nUser-Agent: u\r\n\r\n"];
    for (block, other) in [(blocks[0], blocks[1]), (blocks[1], blocks[0])] {
        for turn in ["read line by line", "compared"] {
            client.exchange(format!("GET /kernel.html HTTP/1.1\r\n{block}"));
            let seen = events.drain().expect("events");
            let [event] = seen[..] else { panic!("{turn}: {seen:?}") };
            let found = fast_path.reports.header_block(&event).expect(turn);
            assert_eq!(String::from_utf8_lossy(&found), block, "{turn}");
        }
        client.exchange(format!("GET /kernel.html HTTP/1.1\r\n{block}"));
        // There is room for one.
        client.exchange(format!("HEAD /kernel.html HTTP/1.1\r\n{other}"));
        let seen = events.drain().expect("events");
        assert_eq!(fast_path.reports.header_block(&seen[0]), None, "another one has its place");
    }
}
