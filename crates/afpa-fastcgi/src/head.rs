//! The head of a program's answer (RFC 3875 section 6), as HTTP/1.1 has it.

use std::borrow::Cow;

use afpa_http::Status;
use afpa_http::syntax::number;

use crate::fault::Fault;

/// The most field lines of a head.
const MOST_FIELDS: usize = 128;

/// How the content behind a head goes on, in the words of HTTP/1.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// There is none; output of the program is dropped.
    None,
    /// So many bytes; output beyond them is dropped.
    Length(u64),
    /// In chunks, up to the end of the request.
    Chunked,
}

/// The bytes of a head that came before, and these. A head that comes whole is not copied.
pub(crate) fn joined(mut before: Vec<u8>, bytes: &[u8]) -> Cow<'_, [u8]> {
    if before.is_empty() {
        return Cow::Borrowed(bytes);
    }
    before.extend_from_slice(bytes);
    Cow::Owned(before)
}

/// The end of the head in `bytes`, behind its empty line. A line ends with LF, or CRLF (RFC 3875 section 6.3).
pub(crate) fn end(bytes: &[u8]) -> Option<usize> {
    memchr::memchr_iter(b'\n', bytes).map(|at| at + 1).find_map(|next| {
        match bytes.get(next..).unwrap_or_default() {
            [b'\n', ..] => Some(next + 1),
            [b'\r', b'\n', ..] => Some(next + 2),
            _ => None,
        }
    })
}

/// Appends the head of an answer as HTTP/1.1 has it. Without `keeps` the connection ends with the answer.
pub(crate) fn translate(
    head: &[u8],
    (asks_head, keeps): (bool, bool),
    out: &mut Vec<u8>,
) -> Result<Content, Fault> {
    let (line, head) = status_line(head);
    let mut slots = [httparse::EMPTY_HEADER; MOST_FIELDS];
    let fields = match httparse::parse_headers(head, &mut slots) {
        Ok(httparse::Status::Complete((_, fields))) if !fields.is_empty() => fields,
        Ok(_) => return Err(Fault::NoHead),
        Err(error) => return Err(Fault::Head(error)),
    };
    let one = |wanted: &str| {
        let mut values = fields.iter().filter(|field| field.name.eq_ignore_ascii_case(wanted));
        let first = values.next().map(|field| field.value);
        if values.next().is_some() { Err(Fault::Twice) } else { Ok(first) }
    };
    let said = one("status")?.or(line);
    // A redirect need not say its status (RFC 3875 section 6.2.3). A path alone would be one that the server follows
    // itself (section 6.2.2); as with nginx, the client follows it.
    let default = if one("location")?.is_some() { "302 Found" } else { "200 OK" };
    let said = said.unwrap_or(default.as_bytes());
    let (code, reason) = said.split_at_checked(3).unwrap_or((said, b""));
    let status = std::str::from_utf8(code).ok().and_then(Status::parse).ok_or(Fault::Status)?;
    if status.code() < 200 || !matches!(reason, [] | [b' ', ..]) {
        return Err(Fault::Status);
    }
    let length = match one("content-length")? {
        Some(value) => Some(number(value).ok_or(Fault::Length)?),
        None => None,
    };
    let content = match length {
        _ if asks_head || !status.has_content() => Content::None,
        Some(length) => Content::Length(length),
        None => Content::Chunked,
    };
    out.extend_from_slice(b"HTTP/1.1 ");
    out.extend_from_slice(code);
    out.push(b' ');
    out.extend_from_slice(reason.trim_ascii());
    out.extend_from_slice(b"\r\n");
    for field in fields.iter().filter(|field| !is_framing(field.name)) {
        put(out, field.name, field.value);
    }
    if let Some(length) = length.filter(|_| asks_head || content != Content::None) {
        put(out, "Content-Length", itoa::Buffer::new().format(length).as_bytes());
    } else if content == Content::Chunked {
        put(out, "Transfer-Encoding", b"chunked");
    }
    if !keeps {
        put(out, "Connection", b"close");
    }
    out.extend_from_slice(b"\r\n");
    Ok(content)
}

/// The status of a line that begins an answer of HTTP, and the rest. A program may say its status so, too
/// (`cgi.rfc2616_headers` of PHP).
fn status_line(head: &[u8]) -> (Option<&[u8]>, &[u8]) {
    let end = memchr::memchr(b'\n', head).map_or(head.len(), |at| at + 1);
    match head.get(..end).and_then(|line| line.strip_prefix(b"HTTP/1.")) {
        Some([b'0' | b'1', b' ', status @ ..]) => {
            (Some(status.trim_ascii()), head.get(end..).unwrap_or_default())
        }
        _ => (None, head),
    }
}

/// Whether a field is the server's affair: how the message is framed, and what concerns a connection alone.
fn is_framing(name: &str) -> bool {
    const THESE: [&str; 9] = [
        "status",
        "content-length",
        "transfer-encoding",
        "connection",
        "keep-alive",
        "proxy-connection",
        "upgrade",
        "te",
        "trailer",
    ];
    THESE.iter().any(|known| name.eq_ignore_ascii_case(known))
}

fn put(out: &mut Vec<u8>, name: &str, value: &[u8]) {
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}
