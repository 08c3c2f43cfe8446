use proptest::prelude::*;

use super::*;

const LIMIT: usize = 1024;

fn bad(input: &[u8], asked: Asked) -> BadResponse {
    let mut slots = Slots::default();
    parse(input, &mut slots, LIMIT, asked).expect_err("bad")
}

/// The head as a client gets it.
fn pass(input: &str, asked: Asked, client: Version, connection: Connection) -> (String, Delivery) {
    let mut slots = Slots::default();
    let response = parse(input.as_bytes(), &mut slots, LIMIT, asked).expect("good").expect("whole");
    let (mut out, delivery) = (Vec::new(), response.delivery(client));
    response.write(
        &mut out,
        delivery,
        connection,
        1_000_000_000,
        Added { set_cookie: Some(b"afpa=x"), hsts: None, lines: b"" },
    );
    (String::from_utf8(out).expect("text"), delivery)
}

#[test]
fn a_head_is_written_anew_without_what_concerns_the_connection() {
    let input = "HTTP/1.0 203 So-so\r\nServer: s\r\nconnection: X-Private, keep-alive\r\n\
        X-Private: 1\r\nKeep-Alive: timeout=5\r\nContent-Length: 0005\r\nSet-Cookie: a\r\n\
        Set-Cookie: b\r\nProxy-Authenticate: x\r\nUpgrade: h2c\r\n\r\nhello";
    let (output, delivery) = pass(input, Asked::default(), Version::Http11, Connection::Implied);
    assert_eq!(
        output,
        "HTTP/1.1 203 So-so\r\nDate: Sun, 09 Sep 2001 01:46:40 GMT\r\nServer: s\r\n\
         Set-Cookie: a\r\nSet-Cookie: b\r\nSet-Cookie: afpa=x\r\nContent-Length: 5\r\n\r\n"
    );
    assert_eq!(delivery, Delivery::Length(5));
}

#[test]
fn a_426_names_the_protocols_however_the_connection_goes_on() {
    let input = "HTTP/1.1 426 Upgrade Required\r\nDate: x\r\nUpgrade: TLS/1.3\r\nConnection: Upgrade\r\n\
        Content-Length: 0\r\n\r\n";
    for (connection, expected) in [
        (Connection::Close, "close, upgrade"),
        (Connection::KeepAlive, "upgrade"),
        (Connection::Implied, "upgrade"),
    ] {
        let (output, _) = pass(input, Asked::default(), Version::Http11, connection);
        let end = format!("Connection: {expected}\r\nUpgrade: TLS/1.3\r\n\r\n");
        assert!(output.ends_with(&end), "{output}");
    }
}

#[test]
fn content_is_delivered_as_the_client_can_take_it() {
    let chunked = "HTTP/1.1 200 OK\r\nDate: x\r\nTransfer-Encoding: chunked\r\n\r\n";
    let close = "HTTP/1.1 200 OK\r\nDate: x\r\n\r\n";
    for input in [chunked, close] {
        let (output, delivery) =
            pass(input, Asked::default(), Version::Http11, Connection::Implied);
        assert!(output.ends_with("Transfer-Encoding: chunked\r\n\r\n"), "{output}");
        assert_eq!(delivery, Delivery::Chunked);
        let (output, delivery) = pass(input, Asked::default(), Version::Http10, Connection::Close);
        assert!(output.ends_with("x\r\nConnection: close\r\n\r\n"), "{output}");
        assert!(!output.contains("Transfer-Encoding"), "{output}");
        assert_eq!(delivery, Delivery::Close);
    }
    let head = Asked { head: true, ..Asked::default() };
    let input = "HTTP/1.1 200 OK\r\nDate: x\r\nContent-Length: 5\r\n\r\n";
    let (output, delivery) = pass(input, head, Version::Http11, Connection::KeepAlive);
    assert!(output.ends_with("Content-Length: 5\r\nConnection: keep-alive\r\n\r\n"), "{output}");
    assert_eq!(delivery, Delivery::None);
    let input = "HTTP/1.1 204 No Content\r\nDate: x\r\nContent-Length: 5\r\n\r\n";
    let (output, _) = pass(input, Asked::default(), Version::Http11, Connection::Implied);
    assert!(!output.contains("Content-Length"), "{output}");
}

#[test]
fn trailer_fields_are_announced_where_they_are_passed_on() {
    let announced = "HTTP/1.1 200 OK\r\nDate: x\r\nTrailer: X-Sum\r\n";
    let chunked = format!("{announced}Transfer-Encoding: chunked\r\n\r\n");
    let none = Asked::default();
    for (input, asked, client, passed) in [
        (chunked.as_str(), none, Version::Http11, true),
        (&chunked, none, Version::Http10, false),
        (&chunked, Asked { head: true, ..none }, Version::Http11, false),
        (&format!("{announced}\r\n"), none, Version::Http11, false),
        (&format!("{announced}Content-Length: 1\r\n\r\n"), none, Version::Http11, false),
    ] {
        let (output, _) = pass(input, asked, client, Connection::Implied);
        assert_eq!(output.contains("\r\nTrailer: X-Sum\r\n"), passed, "{output}");
    }
}

#[test]
fn interim_responses_and_changes_of_protocol_are_told_apart() {
    let asked = Asked { upgrade: true, ..Asked::default() };
    let input = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\
        Connection: Upgrade\r\nSec-WebSocket-Accept: x\r\n\r\n";
    let mut slots = Slots::default();
    let response = parse(input, &mut slots, LIMIT, asked).expect("good").expect("whole");
    assert!(!response.is_interim());
    let mut out = Vec::new();
    let lines = b"Set-Cookie: a=b\r\n";
    response.write_switch(&mut out, Added { lines, ..Added::default() });
    assert_eq!(
        String::from_utf8(out).expect("text"),
        "HTTP/1.1 101 Switching Protocols\r\nSec-WebSocket-Accept: x\r\nSet-Cookie: a=b\r\n\
         Connection: upgrade\r\nUpgrade: websocket\r\n\r\n"
    );
    assert_eq!(bad(input, Asked::default()), BadResponse::Upgrade);
    let mut slots = Slots::default();
    let hint = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n";
    let response = parse(hint, &mut slots, LIMIT, asked).expect("good").expect("whole");
    assert!(response.is_interim());
}

#[test]
fn garbage_is_refused_and_a_prefix_waits() {
    for input in [
        &b"hello\r\n"[..],
        b"HTTP/2.0 200 OK\r\n\r\n",
        b"HTTP/1.1 20x OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nA : b\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nA: b\0\r\n\r\n",
        b"\0",
    ] {
        let error = bad(input, Asked::default());
        assert!(matches!(error, BadResponse::Syntax(_)), "{error} {:?}", input.escape_ascii());
    }
    assert_eq!(bad(b"HTTP/1.1 099 x\r\n\r\n", Asked::default()), BadResponse::Status);
    assert_eq!(bad(b"HTTP/1.1 600 x\r\n\r\n", Asked::default()), BadResponse::Status);
    let both = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n";
    let error = bad(both, Asked::default());
    assert_eq!(error, BadResponse::Framing(FramingError::LengthAndCoding));
    for length in 0..both.len() {
        let mut slots = Slots::default();
        let prefix = parse(&both[..length], &mut slots, LIMIT, Asked::default());
        assert!(matches!(prefix, Ok(None)), "{length}");
    }
    let endless = [b"HTTP/1.1 200 OK\r\nA: ", &[b'x'; LIMIT][..]].concat();
    assert_eq!(bad(&endless, Asked::default()), BadResponse::TooLong);
}

#[test]
fn a_server_keeps_only_what_ends_for_certain() {
    let keeps = |input: &str| {
        let mut slots = Slots::default();
        let asked = Asked::default();
        parse(input.as_bytes(), &mut slots, LIMIT, asked).expect("good").expect("whole").keeps
    };
    assert!(keeps("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n"));
    assert!(keeps("HTTP/1.1 304 Not Modified\r\n\r\n"));
    assert!(keeps("HTTP/1.0 200 OK\r\nContent-Length: 1\r\nConnection: keep-alive\r\n\r\n"));
    assert!(!keeps("HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\n"));
    assert!(!keeps("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: close\r\n\r\n"));
    assert!(!keeps("HTTP/1.1 200 OK\r\n\r\n"));
}

proptest! {
    #[test]
    fn no_bytes_panic(input in proptest::collection::vec(any::<u8>(), 0..200), head in any::<bool>()) {
        let mut slots = Slots::default();
        let _ = parse(&input, &mut slots, LIMIT, Asked { head, upgrade: head, trailers: head, tunnel: false });
    }

    /// Each response is passed on with one head, which says the same about its end as the delivery does.
    #[test]
    fn what_is_written_is_one_well_formed_head(
        status in 100u16..600,
        fields in proptest::collection::vec(
            ("(Connection|Content-Length|Transfer-Encoding|X-A|Set-Cookie|Date|Upgrade)",
             "(chunked|5|0|x|close|x-a|\t| |,|a, b){0,2}"), 0..6),
        old in any::<bool>(), head in any::<bool>(),
    ) {
        let mut input = format!("HTTP/1.{} {status} Some Reason\r\n", u8::from(!old));
        for (name, value) in fields {
            input += &format!("{name}: {value}\r\n");
        }
        input += "\r\n";
        let asked = Asked { head, ..Asked::default() };
        let mut slots = Slots::default();
        let Ok(Some(first)) = parse(input.as_bytes(), &mut slots, LIMIT, asked) else {
            return Ok(());
        };
        let (mut out, delivery) = (Vec::new(), first.delivery(Version::Http11));
        first.write(&mut out, delivery, Connection::Implied, 0, Added::default());
        let mut slots = Slots::default();
        let second = parse(&out, &mut slots, LIMIT, asked).expect("good").expect("whole");
        prop_assert_eq!(second.head_len, out.len());
        prop_assert_eq!(second.status, first.status);
        prop_assert_eq!(second.delivery(Version::Http11), delivery);
        prop_assert!(second.keeps);
    }
}
