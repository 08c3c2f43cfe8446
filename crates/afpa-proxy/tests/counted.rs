//! The memory that one small exchange on a pooled connection may allocate: none.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

use afpa_framework::{Persistence, steady_ms};
use afpa_http::{BodyLength, FieldSlots, RequestLimits, Version, request};
use afpa_proxy::exchange::{self, Core, End, Job, Settings};
use afpa_proxy::pool::BUFFER;
use afpa_proxy::request::{Origin, RequestHead};
use afpa_proxy::select::{Group, GroupSettings, ServerSettings};
use afpa_ring::{CoreRing, Ring};

#[path = "../../afpa-framework/testing/sink.rs"]
mod sink;

use sink::Sink;

/// A server that answers every request on its one connection; its place.
fn server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("binds");
    let place = listener.local_addr().expect("bound").to_string();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        stream.set_nodelay(true).expect("a setting");
        let mut room = [0; 4096];
        // One request at a time, each of which fits into one read.
        while stream.read(&mut room).is_ok_and(|n| n > 0) {
            let answer = b"HTTP/1.1 200 OK\r\nServer: s\r\nContent-Type: text/plain\r\n\
                Content-Length: 102\r\n\r\n";
            stream.write_all(&[&answer[..], &[b'x'; 102]].concat()).expect("sent");
        }
    });
    place
}

fn job(place: &str) -> Job {
    let servers = vec![ServerSettings::at(place.parse().expect("a place"))];
    let group = GroupSettings { name: "app".into(), servers, ..GroupSettings::default() };
    let settings = Settings::default();
    let input =
        b"GET /index?x HTTP/1.1\r\nHost: example.org\r\nUser-Agent: test\r\nAccept: */*\r\n\r\n";
    let mut slots = FieldSlots::default();
    let parsed = request::parse(input, &mut slots, &RequestLimits::default());
    let parsed = parsed.expect("good").expect("whole");
    let mut head = RequestHead::default();
    let origin = Origin { client: Some([192, 0, 2, 1].into()), ..Origin::default() };
    head.write(&parsed, b"/index", &settings.request, origin).expect("passed on");
    Job {
        fastcgi: None,
        preface: None,
        group: Group::new(group, None, steady_ms()),
        settings: Arc::new(settings),
        head,
        body: BodyLength::None,
        asked: Default::default(),
        version: Version::Http11,
        keep_alive: true,
        idempotent: true,
        url_hash: 1,
        client: origin.client,
        sharer: origin.client,
        cookie: None,
        affinity: None,
        names_server: false,
        over_tls: false,
        hsts: None,
        lines: None,
        edits: None,
        replaces: None,
        compress: None,
    }
}

#[test]
fn a_small_exchange_allocates_nothing_and_writes_once() {
    exchanges_allocate_nothing(None);
}

#[test]
fn by_completion_neither() {
    match afpa_ring::PreparedRing::new(&afpa_ring::Settings::default()) {
        Ok(ring) => exchanges_allocate_nothing(Some(ring.enable().expect("this thread owns it"))),
        Err(error) => println!("SKIP: the kernel refuses io_uring: {error}"),
    }
}

fn exchanges_allocate_nothing(ring: Option<Ring>) {
    const EXCHANGES: usize = 200;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    let mut job = job(&server());
    let core_ring = CoreRing::new(ring.clone());
    core_ring.set_used(true);
    let core = Rc::new(Core::new(core_ring));
    let mut client = Sink::with_room(1 << 20);
    let mut exchange = |client: &mut Sink| {
        let mut exchanging = pin!(exchange::run(&mut job, &core, client, None));
        let turning = poll_fn(|cx| {
            let polled = exchanging.as_mut().poll(cx);
            if let Some(ring) = &ring {
                ring.turn().expect("a turn");
                cx.waker().wake_by_ref();
            }
            polled
        });
        let report = runtime.block_on(turning);
        assert_eq!(report.end, End::Relayed(Persistence::Keep));
        assert_eq!((report.status, report.content_bytes), (200, 102));
    };
    for _ in 0..10 {
        exchange(&mut client);
    }
    client.writes = 0;
    let counted = allocation_counter::measure(|| {
        for _ in 0..EXCHANGES {
            exchange(&mut client);
        }
    });
    assert_eq!(client.writes, EXCHANGES, "head and content leave together");
    println!("allocations of {EXCHANGES} exchanges: {counted:?}");
    assert_eq!(counted.count_total, 0, "{counted:?}");
    assert_eq!(core.pool.waiting(), (1, 0));
    assert!(ring.is_none_or(|ring| ring.counts().sockets == 1), "the server's connection is there");
}

/// Many requests wait for their servers at once; the memory in which their answers are gathered is kept for the next ones.
#[test]
fn exchanges_that_wait_for_their_servers_allocate_nothing() {
    const EXCHANGES: usize = 100;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    let core = Rc::new(Core::new(CoreRing::new(None)));
    let mut all: Vec<(Job, Sink)> =
        (0..EXCHANGES).map(|_| (job(&server()), Sink::with_room(1 << 16))).collect();
    let mut at_once = || {
        let run = |(job, client)| Box::pin(exchange::run(job, &core, client, None));
        let mut exchanges: Vec<_> =
            all.iter_mut().map(|(job, client)| Some(run((job, client)))).collect();
        runtime.block_on(poll_fn(|cx| {
            for place in &mut exchanges {
                if place.as_mut().is_some_and(|one| one.as_mut().poll(cx).is_ready()) {
                    *place = None;
                }
            }
            match exchanges.iter().all(Option::is_none) {
                true => Poll::Ready(()),
                false => Poll::Pending,
            }
        }));
    };
    at_once();
    // The exchanges themselves, and the list of them. More answers than ever before may have come in one turn, and they leave
    // together: each of these needs memory once.
    let least = EXCHANGES as u64 + 1;
    let counts: Vec<u64> =
        (0..20).map(|_| allocation_counter::measure(&mut at_once).count_total).collect();
    println!("allocations of {EXCHANGES} exchanges at once: {counts:?}");
    assert!(counts.contains(&least), "{counts:?}");
    assert!(
        counts.iter().map(|count| count - least).sum::<u64>() <= EXCHANGES as u64,
        "{counts:?}"
    );
}

/// All read bytes are with the client or on their way to it: the buffers are there for other exchanges.
#[test]
fn exchanges_that_wait_for_their_clients_hold_no_buffers() {
    const EXCHANGES: usize = 20;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    let core = Rc::new(Core::new(CoreRing::new(None)));
    let waiting: Vec<Rc<Cell<usize>>> = (0..EXCHANGES).map(|_| Rc::default()).collect();
    let mut all: Vec<(Job, Sink)> = waiting
        .iter()
        .map(|count| {
            let refuses = Some(Rc::clone(count));
            (job(&server()), Sink { refuses, ..Sink::with_room(0) })
        })
        .collect();
    let counted = allocation_counter::measure(|| {
        let run = |(job, client)| Box::pin(exchange::run(job, &core, client, None));
        let mut exchanges: Vec<_> =
            all.iter_mut().map(|(job, client)| run((job, client))).collect();
        runtime.block_on(poll_fn(|cx| {
            for exchange in &mut exchanges {
                assert!(exchange.as_mut().poll(cx).is_pending());
            }
            match waiting.iter().all(|count| count.get() > 0) {
                true => Poll::Ready(()),
                false => Poll::Pending,
            }
        }));
    });
    println!("{EXCHANGES} exchanges whose clients take nothing: {counted:?}");
    assert!(counted.bytes_max < 4 * BUFFER as u64, "{counted:?}");
}
