//! A server's answer to a request for another protocol (RFC 9110 section 7.8): docs/rules/passing.md, T3.

use afpa_http::syntax::list;

use crate::response::Response;
use crate::websocket;

/// Whether a 101 changes only to protocols that the request with this head has asked for. `for_http2`: its client
/// speaks HTTP/2, so the key of the WebSocket was ours, and only we can check the answer to it (RFC 8441 section 5).
pub(crate) fn is_as_asked(request: &[u8], response: &Response<'_, '_>, for_http2: bool) -> bool {
    let asked = field(request, b"upgrade").unwrap_or_default();
    let is_asked = |protocol: &[u8]| list(asked).any(|one| one.eq_ignore_ascii_case(protocol));
    let mut protocols = response.protocols().peekable();
    protocols.peek().is_some()
        && protocols.all(is_asked)
        && (!for_http2 || is_accepted(request, response))
}

/// Whether the server has understood the key (RFC 6455 section 4.1). Other protocols have none.
fn is_accepted(request: &[u8], response: &Response<'_, '_>) -> bool {
    let Some(key) = field(request, b"sec-websocket-key") else { return true };
    let lines = response.end_to_end();
    let mut said = lines.filter(|(name, _)| name.eq_ignore_ascii_case(b"sec-websocket-accept"));
    let is_right = |(_, value): (&[u8], &[u8])| value == websocket::accept(key).as_bytes();
    said.next().is_some_and(is_right) && said.next().is_none()
}

/// The value of a field in a head that was written here.
fn field<'a>(head: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    head.split(|&byte| byte == b'\n').skip(1).find_map(|line| {
        let (said, value) = line.split_at_checked(name.len())?;
        let value = value.strip_prefix(b": ")?;
        said.eq_ignore_ascii_case(name).then(|| value.trim_ascii())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::response::{Asked, Slots, parse};

    const REQUEST: &str = "GET / HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\
        Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    const ACCEPT: &str = "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n";

    fn is(request: &str, lines: &str, for_http2: bool) -> bool {
        let answer = format!("HTTP/1.1 101 Switching Protocols\r\n{lines}\r\n");
        let (mut slots, asked) = (Slots::default(), Asked { upgrade: true, ..Asked::default() });
        let response = parse(answer.as_bytes(), &mut slots, 4096, asked).expect("good");
        is_as_asked(request.as_bytes(), &response.expect("whole"), for_http2)
    }

    #[test]
    fn a_change_of_protocols_is_the_one_that_was_asked_for() {
        for (lines, right) in [
            ("Connection: Upgrade\r\nUpgrade: WebSocket\r\n", true),
            ("Connection: keep-alive, upgrade\r\nUpgrade: websocket\r\n", true),
            ("Connection: Upgrade\r\nUpgrade: h2c\r\n", false),
            ("Connection: Upgrade\r\nUpgrade: websocket, h2c\r\n", false),
            ("Connection: Upgrade\r\nUpgrade: h2c\r\nUpgrade: websocket\r\n", false),
            ("Connection: Upgrade\r\nUpgrade: websocket/13\r\n", false),
            ("Connection: Upgrade\r\nUpgrade:\r\n", false),
            ("Connection: Upgrade\r\n", false),
            ("Connection: close\r\nUpgrade: websocket\r\n", false),
            ("Upgrade: websocket\r\n", false),
            ("", false),
        ] {
            assert_eq!(is(REQUEST, lines, false), right, "{lines:?}");
            assert_eq!(is(REQUEST, &format!("{lines}{ACCEPT}"), true), right, "{lines:?}");
        }
        let several = REQUEST.replace("websocket", "chat/2, websocket");
        assert!(is(&several, "Connection: Upgrade\r\nUpgrade: chat/2\r\n", false));
    }

    #[test]
    fn whoever_made_the_key_looks_at_the_answer_to_it() {
        let lines = "Connection: Upgrade\r\nUpgrade: websocket\r\n";
        for (accept, right) in [
            (ACCEPT.to_owned(), true),
            (ACCEPT.to_ascii_lowercase(), false),
            (ACCEPT.repeat(2), false),
            ("Sec-WebSocket-Accept: unknown\r\n".to_owned(), false),
            (String::new(), false),
        ] {
            assert_eq!(is(REQUEST, &format!("{lines}{accept}"), true), right, "{accept:?}");
            assert!(is(REQUEST, &format!("{lines}{accept}"), false), "clients look themselves");
        }
    }
}
