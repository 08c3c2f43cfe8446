//! Requests of AFPA's own to servers, on behalf of a client: for the page of an error, or for leave to answer.

use afpa_http::{FieldSlots, Request, RequestLimits, request};
use afpa_proxy::request::{Origin, RequestHead, RequestPolicy};
use afpa_proxy::select::url_hash;

/// The head of a GET request for `target`, a path and perhaps a query, and the hash of its URL. It has those fields of
/// another request that are not about its method, its content, a part of an answer, or its connection; `is_out`: nor
/// others. `None`: it cannot be asked for.
pub(crate) fn head(
    request: &Request<'_, '_>,
    target: &str,
    is_out: impl Fn(&str) -> bool,
    (policy, origin): (&RequestPolicy, Origin<'_>),
) -> Option<(RequestHead, u64)> {
    let text = question(request, target, is_out);
    let mut slots = FieldSlots::default();
    let limits =
        RequestLimits { head: usize::MAX, request_line: usize::MAX, ..RequestLimits::default() };
    let parsed = request::parse(&text, &mut slots, &limits).ok()??;
    let (path, query) =
        target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
    let mut head = RequestHead::default();
    head.write(&parsed, path.as_bytes(), policy, origin).ok()?;
    Some((head, url_hash(path.as_bytes(), query.map(str::as_bytes))))
}

fn question(request: &Request<'_, '_>, target: &str, is_out: impl Fn(&str) -> bool) -> Vec<u8> {
    let host = request.host.as_bytes();
    let version = if request.host.is_absent() { "1.0" } else { "1.1" };
    let mut text = format!("GET {target} HTTP/{version}\r\n").into_bytes();
    let mut put = |name: &[u8], value: &[u8]| {
        [name, b": ", value, b"\r\n"].iter().for_each(|part| text.extend_from_slice(part));
    };
    if !request.host.is_absent() {
        put(b"Host", host);
    }
    let lines = || request.fields();
    let connection = lines().filter(|(name, _)| name.eq_ignore_ascii_case("connection"));
    let nominated: Vec<&[u8]> =
        connection.flat_map(|(_, value)| value.split(|&byte| byte == b',')).collect();
    for (name, value) in lines() {
        let is_nominated =
            nominated.iter().any(|own| own.trim_ascii().eq_ignore_ascii_case(name.as_bytes()));
        if !is_left_out(name) && !is_out(name) && !is_nominated {
            put(name.as_bytes(), value);
        }
    }
    text.extend_from_slice(b"\r\n");
    text
}

fn is_left_out(name: &str) -> bool {
    const NAMES: [&str; 14] = [
        "accept-encoding",
        "connection",
        "early-data",
        "expect",
        "host",
        "http2-settings",
        "keep-alive",
        "max-forwards",
        "range",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "priority",
    ];
    const BEGINNINGS: [&str; 3] = ["content-", "if-", "sec-websocket-"];
    let name = name.to_ascii_lowercase();
    NAMES.contains(&&*name) || BEGINNINGS.iter().any(|begin| name.starts_with(begin))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_of_our_own_is_a_plain_get() {
        let head = b"POST /x?y HTTP/1.1\r\nHost: a.test:80\r\nCookie: b=c\r\nContent-Type: text/plain\r\n\
            Content-Length: 3\r\nIf-Match: \"x\"\r\nRange: bytes=0-1\r\nConnection: X-Own, keep-alive\r\nX-Own: 1\r\n\
            Expect: 100-continue\r\nAccept-Encoding: br\r\nAuthorization: Basic YTpi\r\nX-Kept: 2\r\n\r\n";
        let mut slots = FieldSlots::default();
        let parsed = request::parse(head, &mut slots, &RequestLimits::default()).unwrap().unwrap();
        let text = String::from_utf8(question(&parsed, "/e/404.html?a", |_| false)).unwrap();
        let wanted = "GET /e/404.html?a HTTP/1.1\r\nHost: a.test:80\r\nCookie: b=c\r\nAuthorization: Basic YTpi\r\nX-Kept: 2\r\n\r\n";
        assert_eq!(text, wanted);
        let text = question(&parsed, "/e/401.html", |name| name == "Authorization");
        assert!(!String::from_utf8(text).unwrap().contains("Authorization"));
    }
}
