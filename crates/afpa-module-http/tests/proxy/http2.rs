//! Requests to servers that are asked by HTTP/2.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use afpa_h2::Limits;
use afpa_h2::frame::{flag, kind, setting};
use afpa_testkit::eventually;

use crate::http2_peer::{OK, peers, rig};
use crate::rig::Rig;

#[test]
fn a_request_and_its_response_pass_by_http2() {
    let server = peers(&[], |mut peer| {
        while let Some(asked) = peer.request() {
            peer.fields_on(asked.id, false, &[(":status", "103"), ("link", "</style>")]);
            peer.fields_on(asked.id, false, &[OK, ("x-own", "1"), ("date", "today")]);
            peer.data(asked.id, false, asked.fields.as_bytes());
            peer.data(asked.id, false, &asked.content);
            peer.fields_on(asked.id, true, &[("x-sum", "2"), ("set-cookie", "never=trails")]);
        }
    });
    let rig = rig(&server);
    let mut client = rig.connect();
    client.send(
        "POST /a?b HTTP/1.1\r\nHost: www.example.org\r\nConnection: TE, x-drop\r\nTE: trailers\r\n\
         X-Drop: 1\r\nX-Keep: 1\r\nCookie: a=1; b=2\r\nTransfer-Encoding: chunked\r\n\
         Trailer: X-Up\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\nX-Up: 3\r\nX-Unnamed: 1\r\n\r\n",
    );
    let interim = client.receive();
    assert_eq!((interim.status, interim.field("link")), (103, Some("</style>")));
    let response = client.receive();
    assert_eq!((response.status, response.field("x-own")), (200, Some("1")));
    let text = response.text();
    for line in [
        ":method=POST\n:scheme=http\n:authority=www.example.org\n:path=/a?b\n",
        "x-keep=1\n",
        "cookie=a=1; b=2\n",
        "te=trailers\n",
        "x-up=3\n",
        "via=1.1 afpa\n",
    ] {
        assert!(text.contains(line), "{line:?} in {text}");
    }
    for never in ["connection", "x-drop", "transfer-encoding", "host=", "x-unnamed"] {
        let is_field = |line: &str| line.starts_with(never);
        assert!(!text.lines().any(is_field), "{never} in {text}");
    }
    assert!(text.ends_with("abcde"), "{text}");
    assert_eq!(response.trailers, [("x-sum".to_owned(), "2".to_owned())]);
}

#[test]
fn many_requests_share_a_connection() {
    let server = peers(&[], |mut peer| {
        // All requests have to be there before one is answered.
        let asked: Vec<_> = (0..20).filter_map(|_| peer.request()).collect();
        asked.iter().rev().for_each(|asked| peer.answer(asked.id, asked.path()));
        peer.answer_all();
    });
    let rig = rig(&server);
    let mut clients: Vec<_> = (0..20).map(|_| rig.connect()).collect();
    for (at, client) in clients.iter_mut().enumerate() {
        client.send(format!("GET /{at} HTTP/1.1\r\nHost: x\r\n\r\n"));
    }
    for (at, client) in clients.iter_mut().enumerate() {
        assert_eq!(client.receive().text(), format!("/{at}"));
        assert_eq!(client.get("/again").text(), "/again");
    }
    assert_eq!(server.accepted(), 1);
}

#[test]
fn a_server_says_how_many_requests_a_connection_carries() {
    let arrived = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&arrived);
    let server = peers(&[(setting::MAX_CONCURRENT_STREAMS, 2)], move |mut peer| {
        while let Some(asked) = peer.request() {
            count.fetch_add(1, Ordering::SeqCst);
            while count.load(Ordering::SeqCst) < 6 {
                std::thread::yield_now();
            }
            peer.answer(asked.id, "ok");
        }
    });
    let rig = rig(&server);
    let mut clients: Vec<_> = (0..6).map(|_| rig.connect()).collect();
    clients.iter_mut().for_each(|client| client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n"));
    // A connection whose first request is not answered cannot be read: six connections, or three with two each.
    eventually("all have arrived", || server.accepted() >= 3);
    arrived.store(6, Ordering::SeqCst);
    clients.iter_mut().for_each(|client| assert_eq!(client.receive().text(), "ok"));
    assert!(server.accepted() <= 6, "{}", server.accepted());
}

#[test]
fn a_group_says_how_many_requests_a_connection_carries() {
    let arrived = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&arrived);
    let server = peers(&[], move |mut peer| {
        while let Some(asked) = peer.request() {
            count.fetch_add(1, Ordering::SeqCst);
            // Each needs a connection of its own, or this would last.
            while count.load(Ordering::SeqCst) < 3 {
                std::thread::yield_now();
            }
            peer.answer(asked.id, "ok");
        }
    });
    let rig = Rig::to(&[&server], |plan| {
        plan.group.http2 = Some(Limits { streams: 1, ..Limits::default() });
    });
    let mut clients: Vec<_> = (0..3).map(|_| rig.connect()).collect();
    clients.iter_mut().for_each(|client| client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n"));
    clients.iter_mut().for_each(|client| assert_eq!(client.receive().text(), "ok"));
    assert_eq!(server.accepted(), 3);
}

#[test]
fn answers_without_content_end_with_their_head() {
    let server = peers(&[], |mut peer| {
        while let Some(asked) = peer.request() {
            let status = asked.path().trim_start_matches('/').to_owned();
            let fields = [(":status", &*status), ("content-length", "1000")];
            match &*status {
                // With its length, as for GET.
                "200" => peer.fields_on(asked.id, true, &fields),
                _ => peer.fields_on(asked.id, true, &fields[..1]),
            }
        }
    });
    let rig = rig(&server);
    let mut client = rig.connect();
    let head = client.exchange("HEAD /200 HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_eq!((head.status, head.field("content-length")), (200, Some("1000")));
    for status in [204, 304, 404] {
        let response = client.get(&format!("/{status}"));
        assert_eq!((response.status, response.body.len()), (status, 0));
    }
    assert_eq!(server.accepted(), 1);
}

#[test]
fn a_slow_client_stops_its_stream_and_no_other() {
    let server = peers(&[], |mut peer| {
        let slow = peer.request().expect("a request");
        peer.fields_on(slow.id, false, &[OK]);
        // As much as the window takes but for the last byte; more would be an error.
        (0..3).for_each(|_| peer.data(slow.id, false, &[b's'; 16_384]));
        peer.data(slow.id, false, &[b's'; 16_383]);
        let fast = peer.request().expect("another");
        peer.answer(fast.id, "fast");
        // From now on as much as the window grows by.
        let (mut seen, mut sent) = (0, 0);
        while sent < 4 << 20 {
            while let Some(&(passed, id, more)) = peer.passed.get(seen) {
                seen += 1;
                if (passed, id) == (kind::WINDOW_UPDATE, slow.id) {
                    for piece in vec![b's'; more as usize].chunks(16_384) {
                        peer.data(slow.id, false, piece);
                    }
                    sent += more;
                }
            }
            let Some(()) = peer.pass_one() else { return };
        }
        peer.data(slow.id, true, b"!");
        peer.answer_all();
    });
    let rig = rig(&server);
    let mut slow = rig.connect();
    slow.send("GET /slow HTTP/1.1\r\nHost: x\r\n\r\n");
    eventually("it has arrived", || server.asked() == 1);
    assert_eq!(rig.connect().get("/fast").text(), "fast");
    let body = slow.receive().body;
    assert!(body.len() > 4 << 20 && body.ends_with(b"s!"), "{}", body.len());
    assert_eq!(rig.connect().get("/after").text(), "/after");
}

#[test]
fn a_server_that_opens_no_window_stops_the_upload() {
    let server = peers(&[(setting::INITIAL_WINDOW_SIZE, 1000)], |mut peer| {
        let (asked, more) = peer.head().expect("a request");
        assert!(more && asked.fields.contains("content-length=100000\n"));
        let (mut got, mut window) = (0, 1000);
        while got < 100_000 {
            let Some((header, payload)) = peer.frame() else { return };
            if header.kind != kind::DATA {
                continue;
            }
            got += payload.len();
            assert!(got <= window, "{got} of {window}");
            if got == window {
                window += 9000;
                let mut more = Vec::new();
                afpa_h2::frame::put_window_update(&mut more, asked.id, 9000);
                afpa_h2::frame::put_window_update(&mut more, 0, 9000);
                peer.conn.send(more);
            }
        }
        peer.answer(asked.id, "all of it");
        peer.answer_all();
    });
    let rig = rig(&server);
    let mut client = rig.connect();
    let head = "PUT /up HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n";
    client.send([head.as_bytes(), &[b'u'; 100_000]].concat());
    assert_eq!(client.receive().text(), "all of it");
    assert_eq!(client.get("/next").text(), "/next");
}

#[test]
fn an_answer_may_come_before_the_request_has_ended() {
    let server = peers(&[(setting::INITIAL_WINDOW_SIZE, 0)], |mut peer| {
        while let Some((asked, _)) = peer.head() {
            peer.answer(asked.id, "no, thank you");
            peer.reset(asked.id, 0);
        }
    });
    let rig = rig(&server);
    let mut client = rig.connect();
    client
        .send("PUT / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 9000\r\n\r\n");
    assert_eq!(client.receive().text(), "no, thank you");
    let mut client = rig.connect();
    client.send("PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 9000\r\n\r\nonly some of it");
    assert_eq!(client.receive().text(), "no, thank you");
}

#[test]
fn padded_frames_and_long_requests_are_understood() {
    let server = peers(&[], |mut peer| {
        while let Some(asked) = peer.request() {
            peer.fields_on(asked.id, false, &[OK, ("content-length", "4")]);
            peer.send(kind::DATA, 8, asked.id, b"\x03okok\0\0\0");
            // END_STREAM by itself, when nobody waits for it any more.
            peer.send(kind::DATA, flag::END_STREAM, asked.id, b"");
            let is_reset = peer.passed.iter().any(|(passed, ..)| *passed == kind::RST_STREAM);
            assert!(!is_reset, "{:?}", peer.passed);
        }
    });
    let rig = rig(&server);
    let mut client = rig.connect();
    for _ in 0..3 {
        let long = "v".repeat(20_000);
        let head = format!("GET / HTTP/1.1\r\nHost: x\r\nX-Long: {long}\r\n\r\n");
        assert_eq!(client.exchange(&head).text(), "okok");
    }
}

#[test]
fn much_content_passes_by_http2() {
    const MUCH: usize = 8 << 20;
    let server = peers(&[], |mut peer| {
        while let Some(asked) = peer.request() {
            if asked.path() == "/up" {
                let length = asked.content.len().to_string();
                peer.answer(asked.id, &length);
                continue;
            }
            let length = MUCH.to_string();
            peer.fields_on(asked.id, false, &[OK, ("content-length", &length)]);
            // The windows of the connection and of the stream, and then their updates.
            let (mut stream, mut seen, mut sent) = (64 << 10, peer.passed.len(), 0);
            while sent < MUCH {
                let n = (MUCH - sent).min(stream).min(16_384);
                if n > 0 {
                    peer.data(asked.id, sent + n == MUCH, &[b'm'; 16_384][..n]);
                    (sent, stream) = (sent + n, stream - n);
                    continue;
                }
                let Some(()) = peer.pass_one() else { return };
                let new = peer.passed.get(seen..).unwrap_or_default().iter();
                let grown = new.filter(|(k, id, _)| (*k, *id) == (kind::WINDOW_UPDATE, asked.id));
                stream += grown.map(|(.., more)| *more as usize).sum::<usize>();
                seen = peer.passed.len();
            }
        }
    });
    let rig = rig(&server);
    for _ in 0..2 {
        let mut client = rig.connect();
        let body = client.get("/down").body;
        assert!(body.len() == MUCH && body.iter().all(|byte| *byte == b'm'));
        let head = format!("PUT /up HTTP/1.1\r\nHost: x\r\nContent-Length: {MUCH}\r\n\r\n");
        client.send(head);
        client.send(vec![b'u'; MUCH]);
        assert_eq!(client.receive().text(), MUCH.to_string());
    }
    assert_eq!(server.accepted(), 1);
}
