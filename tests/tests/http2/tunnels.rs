//! WebSocket through a stream (RFC 8441).

use std::io::{Read as _, Write as _};
use std::time::Duration;

use afpa_h2::frame::{flag, kind, put};
use afpa_testkit::Server;
use afpa_tests::h2::H2Client;
use afpa_tests::proxy::{Raw, read_head, switched};
use socket2::SockRef;

use crate::proxy::proxy;

/// A request for a tunnel.
const WEBSOCKET: [(&str, &str); 6] = [
    (":method", "CONNECT"),
    (":protocol", "websocket"),
    (":scheme", "http"),
    (":path", "/chat"),
    (":authority", "test"),
    ("sec-websocket-version", "13"),
];

#[test]
fn a_websocket_passes_both_ways() {
    // The server sends everything back; it does not look at the frames of WebSocket.
    let server = Raw::start(|mut stream| {
        let Some(head) = read_head(&mut stream) else { return };
        let lower = head.to_ascii_lowercase();
        assert!(
            lower.starts_with("get /chat http/1.1\r\n") && lower.contains("upgrade: websocket")
        );
        assert!(
            lower.contains("sec-websocket-key: ") && lower.contains("sec-websocket-version: 13")
        );
        stream.write_all(switched(&head).as_bytes()).expect("written");
        let mut room = [0; 4096];
        while let Ok(n @ 1..) = stream.read(&mut room) {
            if stream.write_all(&room[..n]).is_err() {
                return;
            }
        }
    });
    let proxy = proxy(&[server.to()], "");
    let mut client = H2Client::connect(&proxy);
    client.ping();
    assert_eq!(client.settings.get(&8), Some(&1), "extended CONNECT is offered");
    let id = client.open(&WEBSOCKET, false);
    client.until("the protocol has changed", |client| !client.so_far(id).fields.is_empty());
    let fields = client.so_far(id).fields;
    assert_eq!(fields[0], (":status".to_owned(), "200".to_owned()));
    assert!(fields.iter().all(|(name, _)| !name.starts_with("sec-websocket-accept")));
    let mut sent = Vec::new();
    for at in 0..100 {
        let message = format!("message {at} ").into_bytes();
        client.frame(kind::DATA, 0, id, &message);
        sent.extend(message);
        client.until("it comes back", |client| client.so_far(id).body.len() == sent.len());
    }
    assert_eq!(client.so_far(id).body, sent);
    let mut last = Vec::new();
    put(&mut last, kind::DATA, flag::END_STREAM, id, b"bye");
    client.send(&last);
    assert!(client.whole(id).body.ends_with(b"bye"));
}

#[test]
fn a_server_that_ends_its_side_of_a_tunnel_gets_what_the_client_still_says() {
    let (heard, all) = std::sync::mpsc::channel();
    let heard = std::sync::Mutex::new(heard);
    let server = Raw::start(move |mut stream| {
        let Some(head) = read_head(&mut stream) else { return };
        let answer = switched(&head) + "all I say";
        stream.write_all(answer.as_bytes()).expect("written");
        stream.shutdown(std::net::Shutdown::Write).expect("shut down");
        let mut text = String::new();
        let outcome = stream.read_to_string(&mut text).map(|_| text);
        let _ = heard.lock().expect("one at a time").send(outcome);
    });
    let proxy = proxy(&[server.to()], "");
    let mut client = H2Client::connect(&proxy);
    let id = client.open(&WEBSOCKET, false);
    client.until("its end has come", |client| client.so_far(id).ended);
    assert_eq!(client.so_far(id).body, b"all I say");
    client.ping();
    assert_eq!(client.so_far(id).reset, None, "the client may go on");
    for _ in 0..20 {
        client.frame(kind::DATA, 0, id, &[b'x'; 10_000]);
    }
    client.frame(kind::DATA, flag::END_STREAM, id, b"bye");
    let heard = all.recv_timeout(Duration::from_secs(20)).expect("it ends").expect("read");
    assert_eq!((heard.len(), heard.ends_with("xbye")), (200_003, true));
    assert_eq!(client.get("/").status, 502, "the connection goes on");
}

#[test]
fn a_server_that_resets_a_tunnel_resets_the_stream() {
    let server = Raw::start(|mut stream| {
        let Some(head) = read_head(&mut stream) else { return };
        stream.write_all(switched(&head).as_bytes()).expect("written");
        stream.read_exact(&mut [0; 4]).expect("read");
        SockRef::from(&stream).set_linger(Some(Duration::ZERO)).expect("the option");
    });
    let proxy = proxy(&[server.to()], "");
    let mut client = H2Client::connect(&proxy);
    let id = client.open(&WEBSOCKET, false);
    client.until("there is a tunnel", |client| !client.so_far(id).fields.is_empty());
    client.frame(kind::DATA, 0, id, b"over");
    assert_eq!(client.whole(id).reset, Some(8), "CANCEL");
}

/// A request for a tunnel to this path.
fn websocket(path: &str) -> [(&str, &str); 6] {
    WEBSOCKET.map(|(name, value)| (name, if name == ":path" { path } else { value }))
}

#[test]
fn only_the_change_of_protocols_that_was_asked_for_is_a_tunnel() {
    let server = Raw::start(|mut stream| {
        let Some(head) = read_head(&mut stream) else { return };
        let right = switched(&head);
        let path = head.split(' ').nth(1).expect("a path");
        let answer = match path {
            "/ok" => "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".to_owned(),
            "/none" => "HTTP/1.1 204 No Content\r\n\r\n".to_owned(),
            "/close" => "HTTP/1.1 200 OK\r\n\r\n".to_owned(),
            "/refused" => "HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno".to_owned(),
            "/other" => right.replace("Upgrade: websocket", "Upgrade: h2c"),
            "/more" => right.replace("Upgrade: websocket", "Upgrade: websocket, h2c"),
            "/unnamed" => right.replace("Upgrade: websocket\r\n", ""),
            "/unsaid" => right.replace("Connection: Upgrade\r\n", ""),
            "/unheard" => right.replace("Sec-WebSocket-Accept: ", "X: "),
            "/misheard" => right.replace("Sec-WebSocket-Accept: ", "Sec-WebSocket-Accept: x"),
            _ => return,
        };
        let _ = stream.write_all(answer.as_bytes());
        let _ = stream.read(&mut [0; 64]);
    });
    let proxy = proxy(&[server.to()], "");
    let mut client = H2Client::connect(&proxy);
    for (path, status) in [
        ("/ok", "502"),
        ("/none", "502"),
        ("/close", "502"),
        ("/refused", "403"),
        ("/other", "502"),
        ("/more", "502"),
        ("/unnamed", "502"),
        ("/unsaid", "502"),
        ("/unheard", "502"),
        ("/misheard", "502"),
    ] {
        let id = client.open(&websocket(path), false);
        client.until("an answer", |client| client.so_far(id).ended);
        let said = client.so_far(id);
        assert_eq!((&*said.fields[0].1, said.reset), (status, None), "{path}");
    }
}

#[test]
fn what_is_no_server_s_is_no_tunnel() {
    let server = Raw::start(|mut stream| {
        while read_head(&mut stream).is_some() {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        }
    });
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("file"), "content").expect("written");
    let proxy = Server::start("/plain", |launch| {
        launch.written(|listen| {
            format!(
                "[http2]\ncleartext = true\n[[server_group]]\nname = \"app\"\nservers = [\"{}\"]\n\
                 [server_group.request]\nupgrades = []\n\
                 [[site]]\nlisten = [\"{listen}\"]\nroot = \"{}\"\ncached = []\n\
                 [[site.path]]\nprefix = \"/app\"\nto = \"app\"\n\
                 [[site.path]]\nprefix = \"/plain\"\nstatus = 200\nbody = \"plain\"\n\
                 [[site.path]]\nprefix = \"/moved\"\nredirect = \"/file\"\n",
                server.to(),
                folder.path().display()
            )
        });
    });
    let mut client = H2Client::connect(&proxy);
    for (path, plain, tunnel) in [
        ("/file", 200, "501"),
        ("/plain", 200, "501"),
        ("/app", 200, "501"),
        ("/moved", 308, "308"),
    ] {
        assert_eq!(client.get(path).status, plain, "{path}");
        let id = client.open(&websocket(path), false);
        client.until("an answer", |client| client.so_far(id).ended);
        let said = client.so_far(id);
        assert_eq!((&*said.fields[0].1, said.reset), (tunnel, None), "{path}");
    }
}
