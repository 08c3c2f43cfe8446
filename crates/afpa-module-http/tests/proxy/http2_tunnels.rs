//! Tunnels to servers that take extended CONNECT (RFC 8441).

use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use afpa_h2::frame::{self, flag, kind, setting};
use afpa_testkit::{Client, eventually};

use crate::http2_peer::{OK, Peer, by_http2, peers, rig, until_closed};
use crate::rig::{Backend, Rig};

/// SETTINGS of a server that takes extended CONNECT.
const OFFER: &[(u16, u32)] = &[(setting::ENABLE_CONNECT_PROTOCOL, 1)];

/// The key of RFC 6455 section 1.3; [`ACCEPT`] answers it.
const KEY: &str = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
const ACCEPT: &str = "sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n";

/// A request of HTTP/1.1 for a WebSocket.
fn handshake(path: &str, lines: &str) -> String {
    format!(
        "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\n{lines}\r\n"
    )
}

/// The head that comes next.
fn head(client: &mut Client) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.extend(client.take(1));
    }
    String::from_utf8_lossy(&head).into_owned()
}

/// A client whose protocol was changed.
fn tunnelled(rig: &Rig, path: &str) -> Client {
    let mut client = rig.connect();
    client.send(handshake(path, KEY));
    let head = head(&mut client);
    assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
    client
}

/// Everything up to the end of the connection.
fn rest(client: &mut Client) -> String {
    String::from_utf8_lossy(&client.read_to_close().expect("it ends")).into_owned()
}

/// Answers requests with their path. A tunnel gets its bytes back in upper case, and `bye` at the end; a tunnel that
/// says `reset` is reset.
fn serve(mut peer: Peer) {
    while let Some((header, payload)) = peer.frame() {
        match header.kind {
            kind::HEADERS => {
                let asked = peer.asked(header, &payload);
                match asked.fields.contains(":protocol=") {
                    true => peer.fields_on(asked.id, false, &[OK]),
                    false => peer.answer(asked.id, asked.path()),
                }
            }
            kind::DATA if payload == b"reset" => peer.reset(header.stream, 2),
            kind::DATA => {
                peer.data(header.stream, false, &payload.to_ascii_uppercase());
                peer.widen(header.stream, payload.len());
                if header.has(flag::END_STREAM) {
                    peer.data(header.stream, true, b"bye");
                }
            }
            _ => {}
        }
    }
}

#[test]
fn a_websocket_is_a_stream() {
    let server = peers(OFFER, |mut peer| {
        let (asked, more) = peer.head().expect("a request");
        assert!(more, "the stream stays open");
        peer.fields_on(asked.id, false, &[(":status", "103"), ("link", "</a>")]);
        let fields =
            [OK, ("sec-websocket-protocol", "chat"), ("sec-websocket-extensions", "deflate")];
        peer.fields_on(asked.id, false, &fields);
        peer.data(asked.id, false, asked.fields.as_bytes());
        serve(peer);
    });
    let rig = rig(&server);
    let mut client = rig.connect();
    let lines = "Sec-WebSocket-Protocol: chat, x\r\nContent-Length: 0\r\nX-Drop: 1\r\n\
                 Connection: x-drop\r\n";
    client.send(handshake("/chat?a", &format!("{KEY}{lines}")) + "early");
    assert!(head(&mut client).starts_with("HTTP/1.1 103 "));
    let head = head(&mut client);
    assert!(head.starts_with("HTTP/1.1 101 Switching Protocols\r\n"), "{head}");
    for line in [
        "connection: upgrade\r\n",
        "upgrade: websocket\r\n",
        ACCEPT,
        "sec-websocket-protocol: chat\r\n",
        "sec-websocket-extensions: deflate\r\n",
    ] {
        let lower = |text: &str| text.to_ascii_lowercase();
        assert_eq!(lower(&head).matches(&lower(line)).count(), 1, "{line:?} in {head}");
    }
    client.send("more");
    client.finish_sending().expect("half closed");
    let said = rest(&mut client);
    for line in [
        ":method=CONNECT\n:protocol=websocket\n:scheme=http\n:authority=x\n:path=/chat?a\n",
        "sec-websocket-version=13\n",
        "sec-websocket-protocol=chat, x\n",
        "via=1.1 afpa\n",
    ] {
        assert!(said.contains(line), "{line:?} in {said}");
    }
    for never in ["upgrade", "connection", "sec-websocket-key", "content-length", "x-drop"] {
        assert!(!said.lines().any(|line| line.starts_with(never)), "{never} in {said}");
    }
    let tail = said.rsplit('\n').next().unwrap_or_default();
    assert_eq!(tail, "EARLYMOREbye");
    assert_eq!(server.accepted(), 1);
}

#[test]
fn tunnels_and_requests_share_a_connection() {
    let server = peers(OFFER, serve);
    let rig = rig(&server);
    let mut tunnels: Vec<_> = (0..5).map(|at| tunnelled(&rig, &format!("/{at}"))).collect();
    let mut other = rig.connect();
    for round in 0..10 {
        for (at, tunnel) in tunnels.iter_mut().enumerate() {
            tunnel.send(format!("say {round} {at}"));
        }
        assert_eq!(other.get("/between").text(), "/between");
        for (at, tunnel) in tunnels.iter_mut().enumerate() {
            let expected = format!("SAY {round} {at}");
            assert_eq!(tunnel.take(expected.len()), expected.as_bytes());
        }
    }
    // One is reset, and one client goes away.
    tunnels[0].send("reset");
    let error = tunnels[0].read_raw(&mut [0; 1]).expect_err("a reset is passed on");
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    tunnels.remove(1).abort().expect("aborted");
    for tunnel in &mut tunnels[1..] {
        tunnel.send("end");
        tunnel.finish_sending().expect("half closed");
        assert_eq!(rest(tunnel), "ENDbye");
    }
    assert_eq!(other.get("/after").text(), "/after");
    assert_eq!(server.accepted(), 1);
}

#[test]
fn a_refusal_is_a_response() {
    let server = peers(OFFER, |mut peer| {
        while let Some(asked) = peer.head().map(|(asked, _)| asked) {
            let is_tunnel = asked.fields.contains(":protocol=websocket\n");
            let status = if is_tunnel { "403" } else { "200" };
            peer.fields_on(asked.id, false, &[(":status", status)]);
            peer.data(asked.id, true, b"so it is");
            if is_tunnel {
                // The request ends with that, and not by force.
                let (header, payload) = peer.frame().expect("its end");
                assert!(header.kind == kind::DATA && payload.is_empty(), "{header:?}");
                assert!(header.has(flag::END_STREAM) && header.stream == asked.id);
            }
        }
    });
    let rig = rig(&server);
    let mut client = rig.connect();
    for _ in 0..3 {
        let response = client.exchange(handshake("/", KEY));
        assert_eq!((response.status, response.text()), (403, "so it is"));
        assert_eq!(client.get("/").status, 200);
    }
    assert_eq!(server.accepted(), 1);
}

#[test]
fn a_key_that_is_none_is_refused_where_afpa_would_have_to_answer_it() {
    let server = peers(OFFER, serve);
    let rig = rig(&server);
    let mut client = rig.connect();
    assert_eq!(client.get("/").text(), "/");
    for keys in ["", "Sec-WebSocket-Key: x\r\n", &KEY.repeat(2)] {
        assert_eq!(rig.connect().exchange(handshake("/", keys)).status, 400, "{keys}");
    }
    assert_eq!(client.get("/").text(), "/");
    assert_eq!((server.accepted(), server.asked()), (1, 2), "the server was not asked");
}

/// A server that does not take extended CONNECT: requests come by HTTP/2, tunnels by HTTP/1.1.
#[test]
fn a_change_of_protocols_goes_by_http11_where_nothing_else_is_offered() {
    let changes = Arc::new(AtomicBool::new(false));
    let later = Arc::clone(&changes);
    let server = Backend::start(move |mut conn| {
        // Reads just enough to tell the protocol.
        if conn.read() == 0 {
            return;
        }
        if conn.first_byte() != Some(b'P') {
            let head = conn.head().expect("a head");
            assert!(head.starts_with("GET /chat HTTP/1.1\r\n"), "{head}");
            return conn.send(
                "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\n\
                 Upgrade: websocket\r\n\r\nhello",
            );
        }
        let settings = [(setting::ENABLE_CONNECT_PROTOCOL, 0)];
        let Some(mut peer) = Peer::begin(conn, &settings) else { return };
        while let Some(asked) = peer.request() {
            if later.load(Ordering::SeqCst) {
                peer.settings(OFFER);
                peer.answer(asked.id, "from now on");
                return serve(peer);
            }
            peer.answer(asked.id, asked.path());
        }
    });
    let rig = rig(&server);
    for lines in ["", KEY] {
        let mut client = rig.connect();
        client.send(handshake("/chat", lines));
        let all = until_closed(&mut client);
        assert!(all.starts_with("HTTP/1.1 101 ") && all.ends_with("hello"), "{all}");
    }
    assert_eq!(rig.connect().get("/x").text(), "/x");
    assert_eq!(server.accepted(), 3, "two tunnels and one connection of HTTP/2");
    changes.store(true, Ordering::SeqCst);
    assert_eq!(rig.connect().get("/x").text(), "from now on");
    let mut tunnel = tunnelled(&rig, "/new");
    tunnel.send("abc");
    assert_eq!(tunnel.take(3), b"ABC");
    assert_eq!(server.accepted(), 3);
}

#[test]
fn an_offer_that_is_none_or_is_taken_back_ends_the_connection() {
    for wrong in [0, 2, 7] {
        let server = peers(OFFER, move |mut peer| {
            if peer.conn.number > 0 {
                return serve(peer);
            }
            let (asked, _) = peer.head().expect("a request");
            peer.fields_on(asked.id, false, &[OK]);
            peer.settings(&[(setting::ENABLE_CONNECT_PROTOCOL, wrong)]);
            while let Some((header, payload)) = peer.frame() {
                if header.kind == kind::GOAWAY {
                    assert_eq!(payload[4..8], [0, 0, 0, 1], "PROTOCOL_ERROR");
                    peer.conn.count_head();
                }
            }
        });
        let rig = rig(&server);
        let mut client = rig.connect();
        client.send(handshake("/", KEY));
        until_closed(&mut client);
        eventually("it is told why", || server.asked() == 2);
        let mut tunnel = tunnelled(&rig, "/again");
        tunnel.send("abc");
        assert_eq!(tunnel.take(3), b"ABC");
        assert_eq!(server.accepted(), 2);
    }
}

#[test]
fn a_tunnel_outlives_the_goaway_of_its_server() {
    let server = peers(OFFER, |mut peer| {
        if peer.conn.number == 0 {
            let (asked, _) = peer.head().expect("a request");
            peer.go_away(asked.id, 0);
            peer.fields_on(asked.id, false, &[OK]);
        }
        serve(peer);
    });
    let rig = rig(&server);
    let mut old = tunnelled(&rig, "/");
    let mut new = tunnelled(&rig, "/");
    assert_eq!(server.accepted(), 2);
    for tunnel in [&mut old, &mut new, &mut tunnelled(&rig, "/")] {
        tunnel.send("abc");
        assert_eq!(tunnel.take(3), b"ABC");
        tunnel.finish_sending().expect("half closed");
        assert_eq!(rest(tunnel), "bye");
    }
    assert_eq!(server.accepted(), 2);
}

#[test]
fn a_server_that_did_not_look_at_a_tunnel_is_asked_again() {
    let server = peers(OFFER, |mut peer| {
        if peer.conn.number == 0 {
            let (asked, _) = peer.head().expect("a request");
            peer.reset(asked.id, 7);
        }
        serve(peer);
    });
    let rig = rig(&server);
    let mut tunnel = tunnelled(&rig, "/");
    tunnel.send("abc");
    assert_eq!(tunnel.take(3), b"ABC");
    // Once it may have looked, the handshake is not repeated.
    let server = peers(OFFER, |mut peer| {
        while let Some((asked, _)) = peer.head() {
            peer.reset(asked.id, 2);
        }
    });
    let rig = Rig::to(&[&server], by_http2);
    assert_eq!(rig.connect().exchange(handshake("/", KEY)).status, 502);
    assert_eq!(server.asked(), 1);
}

#[test]
fn what_a_client_says_arrives_when_its_server_has_ended_and_opens_its_window_slowly() {
    const SAID: usize = 60_000;
    let server = peers(
        &[(setting::ENABLE_CONNECT_PROTOCOL, 1), (setting::INITIAL_WINDOW_SIZE, 10)],
        |mut peer| {
            let (asked, _) = peer.head().expect("a request");
            peer.fields_on(asked.id, false, &[OK]);
            peer.data(asked.id, true, b"all I say");
            let (mut heard, mut window) = (0, 10);
            while let Some((header, payload)) = peer.frame() {
                if header.kind != kind::DATA {
                    assert!(header.kind != kind::RST_STREAM, "{payload:?} after {heard}");
                    continue;
                }
                heard += payload.len();
                assert!(heard <= window && payload.iter().all(|byte| *byte == b'u'));
                if header.has(flag::END_STREAM) {
                    assert_eq!(heard, SAID);
                    peer.conn.count_head();
                } else if heard == window {
                    window += 997;
                    peer.widen(asked.id, 997);
                }
            }
        },
    );
    let rig = rig(&server);
    let mut client = tunnelled(&rig, "/");
    client.send(vec![b'u'; SAID]);
    client.finish_sending().expect("half closed");
    assert_eq!(rest(&mut client), "all I say");
    eventually("all of it has arrived, and its end", || server.asked() == 2);
}

#[test]
fn what_a_server_says_arrives_at_a_slow_client() {
    const SAID: usize = 3 << 20;
    let server = peers(OFFER, |mut peer| {
        let (asked, _) = peer.head().expect("a request");
        peer.fields_on(asked.id, false, &[OK]);
        let (mut sent, mut window, mut seen) = (0, 64 << 10, 0);
        while sent < SAID {
            let n = (SAID - sent).min(window).min(16_384);
            if n > 0 {
                peer.data(asked.id, sent + n == SAID, &[b'd'; 16_384][..n]);
                (sent, window) = (sent + n, window - n);
                continue;
            }
            let Some(()) = peer.pass_one() else { return };
            let new = peer.passed.get(seen..).unwrap_or_default().iter();
            let grown = new.filter(|(k, id, _)| (*k, *id) == (kind::WINDOW_UPDATE, asked.id));
            window += grown.map(|(.., more)| *more as usize).sum::<usize>();
            seen = peer.passed.len();
        }
        // And it wants to hear no more of it (RFC 9113 section 8.1).
        peer.reset(asked.id, 0);
        peer.conn.count_head();
        peer.answer_all();
    });
    let rig = rig(&server);
    let mut client = Client::connect_narrow(rig.address, 16 * 1024).expect("connects");
    client.send(handshake("/", KEY));
    assert!(head(&mut client).starts_with("HTTP/1.1 101 "));
    // As little as the server needs to say all: much is on its way then.
    let mut said = Vec::new();
    while server.asked() < 2 {
        said.extend(client.take(16_384));
    }
    // No server reads these bytes, and they stop nothing.
    client.send("what nobody hears");
    said.extend(client.take(SAID - said.len()));
    assert!(said.iter().all(|byte| *byte == b'd'));
    client.send("nor this");
    client.finish_sending().expect("half closed");
    assert_eq!(rest(&mut client), "");
    assert_eq!(rig.connect().get("/other").text(), "/other");
    assert_eq!(server.accepted(), 1);
}

#[test]
fn a_tunnel_ends_with_its_connection_and_with_its_time() {
    let server = peers(OFFER, |mut peer| {
        let (asked, _) = peer.head().expect("a request");
        peer.fields_on(asked.id, false, &[OK]);
        peer.data(asked.id, false, b"now");
        if asked.path() == "/gone" {
            while peer.frame().is_some_and(|(header, _)| header.kind != kind::DATA) {}
        } else {
            // CANCEL: nobody waits for it any more.
            assert_eq!(peer.wait_for_reset(), Some((asked.id, 8)));
            peer.conn.count_head();
            peer.conn.wait_for_end();
        }
    });
    let rig = Rig::to(&[&server], |plan| {
        by_http2(plan);
        plan.exchange.tunnel_idle = std::time::Duration::from_secs(2);
    });
    for (path, asked) in [("/gone", 1), ("/idle", 3)] {
        let mut client = tunnelled(&rig, path);
        assert_eq!(client.take(3), b"now");
        if path == "/gone" {
            client.send("go");
        }
        assert_eq!(until_closed(&mut client), "");
        eventually("the server knows", || server.asked() == asked);
    }
}

#[test]
fn a_tunnel_has_neither_trailers_nor_another_head() {
    let server = peers(OFFER, |mut peer| {
        while let Some((asked, _)) = peer.head() {
            peer.fields_on(asked.id, false, &[OK, ("sec-websocket-accept", "mine")]);
            match asked.path() {
                "/trailers" => peer.fields_on(asked.id, true, &[("x-sum", "1")]),
                _ => peer.fields_on(asked.id, false, &[OK]),
            }
            let malformed = Some((asked.id, 1));
            assert_eq!(peer.wait_for_reset(), malformed);
            peer.passed.clear();
        }
    });
    let rig = rig(&server);
    for path in ["/trailers", "/head"] {
        let mut client = rig.connect();
        client.send(handshake(path, KEY));
        let all = until_closed(&mut client);
        assert!(all.starts_with("HTTP/1.1 101 ") && !all.contains("mine"), "{all}");
        assert!(all.ends_with("\r\n\r\n"), "{all}");
    }
    assert_eq!((server.accepted(), server.asked()), (1, 2));
}

/// Frames that a peer writes at once.
impl Peer {
    fn widen(&mut self, id: u32, bytes: usize) {
        let mut more = Vec::new();
        if bytes > 0 {
            frame::put_window_update(&mut more, 0, bytes as u32);
            frame::put_window_update(&mut more, id, bytes as u32);
        }
        self.conn.send(more);
    }

    fn settings(&mut self, settings: &[(u16, u32)]) {
        let mut out = Vec::new();
        frame::put_settings(&mut out, settings);
        self.conn.send(out);
    }
}
