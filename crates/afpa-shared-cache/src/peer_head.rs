//! The head of a question to another machine, and its key: the request of the client, without what is about its connection.

use afpa_http::{FieldSlots, Method, request};

use crate::key::{KeyRoom, Place, SCOPE_LEN, put_primary};
use crate::request::{CacheRequest, ClientHead};

/// The part of a primary key that is the same on each machine.
pub(crate) fn shared_key(primary: &[u8]) -> &[u8] {
    primary.split_at(primary.len().saturating_sub(SCOPE_LEN)).0
}

/// The key of a request, as other machines have it too.
pub fn key_of<'k>(room: &'k mut KeyRoom, wanted: &CacheRequest<'_, '_, '_>) -> &'k [u8] {
    let CacheRequest { cache, request, url, path, origin, sent, .. } = *wanted;
    let place = Place { scope: cache.scope, url, path, origin, sent };
    put_primary(&cache.policy, wanted.exchange, request, place, &mut room.primary);
    shared_key(&room.primary)
}

/// The head of a question; `None`: the request is none that is passed on to another machine. `with_conditions`: those of the
/// client stay.
pub(crate) fn head_of(head: ClientHead<'_>, with_conditions: bool) -> Option<Vec<u8>> {
    let mut slots = FieldSlots::new();
    let parsed = request::parse(head.bytes, &mut slots, &head.limits).ok()??;
    let path = parsed.target.path().filter(|_| parsed.method == Method::Get)?;
    if parsed.host.is_absent() {
        return None;
    }
    let mut text = Vec::with_capacity(head.bytes.len() + 320);
    text.extend_from_slice(b"GET ");
    text.extend_from_slice(path);
    if let Some(query) = parsed.target.query() {
        text.push(b'?');
        text.extend_from_slice(query);
    }
    text.extend_from_slice(b" HTTP/1.1\r\n");
    let mut put = |name: &[u8], value: &[u8]| {
        [name, b": ", value, b"\r\n"].iter().for_each(|part| text.extend_from_slice(part));
    };
    put(b"Host", parsed.host.as_bytes());
    for (name, value) in parsed.fields() {
        let is = |known: &&str| name.eq_ignore_ascii_case(known);
        let is_condition = CONDITIONS.iter().any(is);
        if !LEFT_OUT.iter().any(is) && (with_conditions || !is_condition) {
            put(name.as_bytes(), value);
        }
    }
    text.extend_from_slice(b"\r\n");
    Some(text)
}

/// Conditions that the cache evaluates.
pub(crate) const CONDITIONS: [&str; 2] = ["If-None-Match", "If-Modified-Since"];

/// Fields about the connection, the content, or a part of the answer.
const LEFT_OUT: [&str; 15] = [
    "connection",
    "content-length",
    "early-data",
    "expect",
    "host",
    "http2-settings",
    "if-range",
    "keep-alive",
    "max-forwards",
    "proxy-connection",
    "range",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

#[cfg(test)]
mod tests {
    use super::*;
    use afpa_http::RequestLimits;

    #[test]
    fn a_question_has_nothing_of_the_connection_and_the_conditions_on_demand() {
        let bytes = b"GET http://a.test/x%2Fy?z HTTP/1.1\r\nHost: a.test\r\nCookie: b=c\r\nConnection: keep-alive, te\r\nTE: trailers\r\n\
            If-None-Match: \"x\"\r\nRange: bytes=0-1\r\nAccept-Encoding: br\r\nKeep-Alive: 5\r\n\r\n";
        let head = ClientHead { bytes, limits: RequestLimits::default() };
        let text = |with| String::from_utf8(head_of(head, with).unwrap()).unwrap();
        let begin = "GET /x%2Fy?z HTTP/1.1\r\nHost: a.test\r\nCookie: b=c\r\n";
        assert_eq!(text(false), format!("{begin}Accept-Encoding: br\r\n\r\n"));
        let conditions = "If-None-Match: \"x\"\r\n";
        assert_eq!(text(true), format!("{begin}{conditions}Accept-Encoding: br\r\n\r\n"));
        for other in [&b"HEAD / HTTP/1.1\r\nHost: a\r\n\r\n"[..], b"GET / HTTP/1.0\r\n\r\n"] {
            let head = ClientHead { bytes: other, limits: RequestLimits::default() };
            assert!(head_of(head, true).is_none());
        }
    }
}
