//! Statuses that the configuration writes.

use std::fmt::Write as _;
use std::fs;

use afpa_testkit::{Endpoint, Server, eventually};
use afpa_tests::h2::H2Client;

/// A site that answers `/s/N` with the status N, for every final one, and `/r/N` with a redirect.
fn server() -> Server {
    let config = |listen: &Endpoint| {
        let mut text = format!("[http2]\ncleartext = true\n\n[[site]]\nlisten = [\"{listen}\"]\n");
        for status in 200..600 {
            let has_content = !matches!(status, 204 | 205 | 304);
            let body = if has_content { "body = \"some\"\n" } else { "" };
            let path = format!("prefix = \"/s/{status}\"\nexact = true\nstatus = {status}\n{body}");
            write!(text, "\n[[site.path]]\n{path}").expect("a text grows");
        }
        for status in [301, 302, 303, 307, 308] {
            let path = format!("prefix = \"/r/{status}\"\nexact = true\nredirect = \"/\"\n");
            write!(text, "\n[[site.path]]\n{path}redirect_status = \"{status}\"\n")
                .expect("a text grows");
        }
        text
    };
    Server::start("/", |launch| {
        let log = launch.home().join("access.log");
        launch.written(config).arg("--access-log").arg(log);
    })
}

/// IANA's registry of final statuses. 306 and 418 are reserved there, without a name.
const REASONS: &[(u16, &str)] = &[
    (200, "OK"),
    (201, "Created"),
    (202, "Accepted"),
    (203, "Non-Authoritative Information"),
    (204, "No Content"),
    (205, "Reset Content"),
    (206, "Partial Content"),
    (207, "Multi-Status"),
    (208, "Already Reported"),
    (226, "IM Used"),
    (300, "Multiple Choices"),
    (301, "Moved Permanently"),
    (302, "Found"),
    (303, "See Other"),
    (304, "Not Modified"),
    (305, "Use Proxy"),
    (307, "Temporary Redirect"),
    (308, "Permanent Redirect"),
    (400, "Bad Request"),
    (401, "Unauthorized"),
    (402, "Payment Required"),
    (403, "Forbidden"),
    (404, "Not Found"),
    (405, "Method Not Allowed"),
    (406, "Not Acceptable"),
    (407, "Proxy Authentication Required"),
    (408, "Request Timeout"),
    (409, "Conflict"),
    (410, "Gone"),
    (411, "Length Required"),
    (412, "Precondition Failed"),
    (413, "Content Too Large"),
    (414, "URI Too Long"),
    (415, "Unsupported Media Type"),
    (416, "Range Not Satisfiable"),
    (417, "Expectation Failed"),
    (421, "Misdirected Request"),
    (422, "Unprocessable Content"),
    (423, "Locked"),
    (424, "Failed Dependency"),
    (425, "Too Early"),
    (426, "Upgrade Required"),
    (428, "Precondition Required"),
    (429, "Too Many Requests"),
    (431, "Request Header Fields Too Large"),
    (451, "Unavailable For Legal Reasons"),
    (500, "Internal Server Error"),
    (501, "Not Implemented"),
    (502, "Bad Gateway"),
    (503, "Service Unavailable"),
    (504, "Gateway Timeout"),
    (505, "HTTP Version Not Supported"),
    (506, "Variant Also Negotiates"),
    (507, "Insufficient Storage"),
    (508, "Loop Detected"),
    (510, "Not Extended"),
    (511, "Network Authentication Required"),
];

fn reason_of(status: u16) -> &'static str {
    REASONS.iter().find(|(known, _)| *known == status).map_or("", |(_, reason)| reason)
}

#[test]
fn every_configured_status_is_answered_as_it_is_written() {
    let server = server();
    let mut client = server.connect();
    for status in 200..600 {
        let target = format!("/s/{status}");
        let response = client.get(&target);
        assert_eq!((response.status, &*response.reason), (status, reason_of(status)));
        let length = response.field("Content-Length").map(str::to_owned);
        let content = (length.as_deref(), response.text());
        let expected = match status {
            204 | 304 => (None, ""),
            205 => (Some("0"), ""),
            _ => (Some("4"), "some"),
        };
        assert_eq!(content, expected, "{status}");
        let has_type = response.field("Content-Type").is_some();
        assert_eq!(has_type, !expected.1.is_empty(), "{status}");
        let head = client.head_with(&target, "");
        assert_eq!((head.status, head.field("Content-Length")), (status, expected.0));
    }
    for status in [301, 302, 303, 307, 308] {
        let response = client.get(&format!("/r/{status}"));
        assert_eq!((response.status, &*response.reason), (status, reason_of(status)));
        assert_eq!(response.field("Location"), Some("/"));
    }
    let log = server.home().join("access.log");
    let is_logged =
        |text: &str, status: u16| text.contains(&format!("\"GET /s/{status} HTTP/1.1\" {status} "));
    eventually("each is in the access log", || {
        let text = fs::read_to_string(&log).unwrap_or_default();
        (200..600).all(|status| is_logged(&text, status))
    });
}

#[test]
fn a_configured_status_is_the_same_by_http2() {
    let server = server();
    let mut client = H2Client::connect(&server);
    for status in (200..600).step_by(7).chain([204, 205, 206, 226, 304, 418, 451, 511, 599]) {
        let response = client.get(&format!("/s/{status}"));
        let content = if matches!(status, 204 | 205 | 304) { "" } else { "some" };
        assert_eq!((response.status, response.text()), (status, content));
    }
}
