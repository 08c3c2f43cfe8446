//! Promises of the proxy that hold for any bytes: one function per fuzz target. They panic when a promise
//! is broken, and are driven like those of `lib.rs`, and by an ordinary test of afpa-proxy.

use afpa_http::{Connection, FieldSlots, RequestLimits, Version, request, target};
use afpa_proxy::end::{Boundary, Content, EndError, Ending, Trailers};
use afpa_proxy::request::{Origin, RequestHead, RequestPolicy};
use afpa_proxy::response::{self, Added, Asked, Slots};

/// Ends of content: the first byte says how the rest is split, the second which way it ends; no split
/// changes anything, and nothing is read beyond the end.
pub fn ending(data: &[u8]) {
    let [step, way, wire @ ..] = data else { return };
    let ending = match way % 4 {
        0 => Ending::Length(u64::from(*way)),
        1 => Ending::Chunked,
        2 => match Boundary::of_byteranges(b"multipart/byteranges; boundary=B-B") {
            Some(boundary) => Ending::Multipart(boundary),
            None => return,
        },
        _ => Ending::Close,
    };
    let whole = read(&ending, wire, wire.len().max(1));
    assert_eq!(read(&ending, wire, usize::from(*step).max(1)), whole);
    if let (Ending::Length(length), Ok((content, consumed, done, _))) = (&ending, &whole) {
        assert_eq!(content.len(), *consumed);
        assert_eq!(*done, *consumed as u64 == *length);
    }
    if let Ok((.., done, trailers)) = whole {
        assert!(trailers.is_empty() || done && ending == Ending::Chunked);
        for (name, value) in trailers.fields() {
            assert!(!name.is_empty() && name.iter().all(u8::is_ascii_graphic));
            assert!(!value.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0)));
        }
    }
}

type Read = (Vec<u8>, usize, bool, Trailers);

fn read(ending: &Ending, wire: &[u8], step: usize) -> Result<Read, EndError> {
    let mut content = Content::new(ending);
    let (mut data, mut at) = (Vec::new(), 0);
    for piece in wire.chunks(step) {
        let mut rest = piece;
        while !rest.is_empty() && !content.is_done() {
            let progress = content.feed(rest)?;
            assert!(progress.consumed > 0 && progress.data.end <= progress.consumed);
            data.extend_from_slice(&rest[progress.data]);
            rest = &rest[progress.consumed..];
            at += progress.consumed;
        }
    }
    let trailers = content.trailers().clone();
    Ok((data, at, content.is_done(), trailers))
}

/// Heads of responses: the parser's verdict never changes once it is given. The head that is passed on is one
/// head, with one way to end, and has no field that concerns only one connection.
pub fn response(data: &[u8]) {
    const LIMIT: usize = 512;
    let Some((&flags, wire)) = data.split_first() else { return };
    let (head, upgrade) = (flags & 1 != 0, flags & 2 != 0);
    let asked = Asked { head, upgrade, trailers: flags & 8 != 0, tunnel: flags & 16 != 0 };
    let client = if flags & 4 == 0 { Version::Http11 } else { Version::Http10 };
    let answer = |input: &[u8]| {
        let mut slots = Slots::default();
        let parsed = response::parse(input, &mut slots, LIMIT, asked);
        parsed.map(|parsed| parsed.map(|parsed| (parsed.status, parsed.head_len, parsed.keeps)))
    };
    let whole = answer(wire);
    for end in 0..wire.len().min(LIMIT) {
        if let Ok(Some(given)) = answer(&wire[..end]) {
            assert_eq!(whole, Ok(Some(given)));
            break;
        }
    }
    let mut slots = Slots::default();
    let Ok(Some(parsed)) = response::parse(wire, &mut slots, LIMIT, asked) else { return };
    assert!(parsed.head_len <= wire.len());
    if parsed.is_interim() || parsed.status == 101 {
        return;
    }
    let (mut out, delivery) = (Vec::new(), parsed.delivery(client));
    parsed.write(&mut out, delivery, Connection::Implied, 0, Added::default());
    let mut slots = Slots::default();
    let again = response::parse(&out, &mut slots, usize::MAX, asked);
    let again = again.expect("well-formed").expect("whole");
    assert_eq!((again.head_len, again.status), (out.len(), parsed.status));
    assert_eq!(again.delivery(client), delivery);
}

/// Requests: a server gets one well-formed request with the content, the method and the path that
/// the client meant.
pub fn forward(data: &[u8]) {
    let limits = RequestLimits { request_line: 256, head: 1024, fields: 16 };
    let (mut slots, mut room) = (FieldSlots::new(), Vec::new());
    let Ok(Some(first)) = request::parse(data, &mut slots, &limits) else { return };
    let Some(path) = first.target.path() else { return };
    let Ok(path) = target::spell(path, &mut room) else { return };
    let mut head = RequestHead::default();
    let origin = Origin {
        client: Some([192, 0, 2, 1].into()),
        first: Some([198, 51, 100, 1].into()),
        trusted: data.len().is_multiple_of(2),
        secure: false,
        subject: None,
        is_early: data.len().is_multiple_of(3),
    };
    if head.write(&first, path, &RequestPolicy::default(), origin).is_err() {
        return;
    }
    let bytes = head.bytes_for("server:80").to_vec();
    let mut slots = FieldSlots::new();
    let second = request::parse(&bytes, &mut slots, &RequestLimits::default());
    let second = second.expect("well-formed").expect("whole");
    assert_eq!(second.head_len, bytes.len());
    assert_eq!((second.method, second.body), (first.method, first.body));
    assert_eq!(second.expect_continue, first.expect_continue);
    let mut again = Vec::new();
    assert_eq!(target::spell(second.target.path().unwrap_or_default(), &mut again), Ok(path));
}
