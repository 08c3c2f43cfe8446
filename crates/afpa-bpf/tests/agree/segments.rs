//! Segments with some requests in a row, most of them good, the same sequence in every run.

use super::generator::{Chance, head};

const METHODS: &[&str] = &[
    "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "POST", "PUT", "GET", "HEAD", "TRACE", "CONNECT",
    "post", "POSTS", "PURGE",
];
const LENGTHS: &[&str] = &[
    "Content-Length: 00003",
    "Content-Length: +3",
    "Content-Length: 3, 3",
    "Content-Length: 3 ",
    "Content-Length:3",
    "Content-Length:\t3",
    "content-length: 3",
    "Content-Length: -3",
    "Content-Length: 0x3",
    "Content-Length:",
    "Content-Length: 9999999999",
    "Content-Length: 4294967299",
    "Content-Length: 1073741824",
    "Content-Length: 1073741825",
    "Content-Length: 18446744073709551619",
    "Content-Length: 3\r\nContent-Length: 3",
    "Content-Length: 3\r\nContent-Length: 4",
    "Content-Length: 3\r\nTransfer-Encoding: chunked",
    "Transfer-Encoding: chunked",
    "Content_Length: 3",
    "Content-Length : 3",
    "Expect: 100-continue\r\nContent-Length: 3",
    "X: y",
];

/// One segment, which has some payload.
pub fn segment(seeds: &[Vec<u8>], chance: &mut Chance) -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..1 + chance.below(5) {
        match chance.below(4) {
            0 => bytes.extend(head(seeds, chance)),
            1 => bytes.extend(b"GET /index.html HTTP/1.1\r\nHost: a\r\n\r\n"),
            _ => bytes.extend(with_content(chance)),
        }
    }
    if chance.below(4) == 0 {
        bytes.truncate(chance.below(bytes.len() + 1));
    }
    if chance.below(6) == 0 && !bytes.is_empty() {
        let at = chance.below(bytes.len());
        bytes[at] = *chance.pick(b"\r\n :0 GP\0\t,");
    }
    bytes.truncate(2990); // more does not fit a test packet
    if bytes.is_empty() { vec![b'G'] } else { bytes }
}

/// A request whose content may be another request, and whose length may be wrong.
fn with_content(chance: &mut Chance) -> Vec<u8> {
    let content: &[u8] = match chance.below(3) {
        0 => b"GET /index.html HTTP/1.1\r\nHost: a\r\n\r\n",
        1 => b"a=1",
        _ => b"",
    };
    let length = match chance.below(6) {
        0 => (*chance.pick::<&str>(LENGTHS)).to_owned(),
        1 => format!("Content-Length: {}", chance.below(content.len() + 3)),
        _ => format!("Content-Length: {}", content.len()),
    };
    let methods = if chance.below(3) == 0 { METHODS } else { &METHODS[..5] };
    let method = *chance.pick::<&str>(methods);
    let head = format!("{method} /index.html HTTP/1.1\r\nHost: a\r\n{length}\r\n\r\n");
    [head.as_bytes(), content].concat()
}
