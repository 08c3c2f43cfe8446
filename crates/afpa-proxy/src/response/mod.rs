//! The head of a server's response. The fields that say where the response ends are parsed strictly; the head
//! is written anew for the client.

use std::mem::MaybeUninit;

use afpa_http::syntax::list;
use afpa_http::{Connection, HttpDate, Version};

use crate::end::{Ending, Framing, FramingError};
use crate::fields::{self, Kind, Nominated, put, put_length};
use crate::trailers::MayTrail;

/// The most field lines a response can have.
pub const MAX_FIELDS: usize = 128;

/// Room on the stack for the field lines of one head; never cleared.
pub struct Slots<'b>([MaybeUninit<httparse::Header<'b>>; MAX_FIELDS]);

impl Default for Slots<'_> {
    fn default() -> Self {
        Self([const { MaybeUninit::uninit() }; MAX_FIELDS])
    }
}

/// The facts of a request that the parser of its response needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// The method was HEAD: there is no content.
    pub head: bool,
    /// The request asked for a change of protocol (Upgrade).
    pub upgrade: bool,
    /// The client takes trailer fields (TE).
    pub trailers: bool,
    /// The client takes every success for the tunnel that it has asked for (RFC 8441 section 5).
    pub tunnel: bool,
}

/// Why a response is not passed on; the answer is 502, and the connection is not used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadResponse {
    /// Not HTTP, or not well-formed.
    #[error("the response is not HTTP/1: {0}")]
    Syntax(httparse::Error),
    /// The head is longer than the limit.
    #[error("the head of the response is longer than the limit")]
    TooLong,
    /// A status code that does not exist (RFC 9110 section 15).
    #[error("the status code is not between 100 and 599")]
    Status,
    /// 101, although the request asked for no other protocol, or not for this one.
    #[error("a change of protocol that was not asked for")]
    Upgrade,
    /// A success that the client would take for the tunnel that it has asked for.
    #[error("no change to the protocol that was asked for, and no refusal")]
    NoTunnel,
    /// It has more Connection lines than a sensible server sends.
    #[error("too many Connection fields")]
    Connection,
    /// A fault that only HTTP/2 has (RFC 9113 section 8.1.1).
    #[error("the response is malformed, as HTTP/2 has it")]
    Http2,
    /// A fault that only FastCGI has.
    #[error("the response is not FastCGI: {0}")]
    FastCgi(afpa_fastcgi::Fault),
    /// Its end is not certain.
    #[error("{0}")]
    Framing(#[from] FramingError),
}

/// A response head that passed every check.
#[derive(Debug)]
pub struct Response<'s, 'b> {
    /// The version the server speaks.
    pub version: Version,
    /// The status code.
    pub status: u16,
    /// Bytes of the head.
    pub head_len: usize,
    /// How the response ends.
    pub ending: Ending,
    /// Whether the server keeps the connection.
    pub keeps: bool,
    /// It is passed on without the content coding that the same request would get at another time.
    pub is_makeshift: bool,
    reason: &'b str,
    /// The length it announces, with content or without.
    length: Option<u64>,
    has_date: bool,
    upgrade: Option<&'b [u8]>,
    nominated: Nominated<'b>,
    lines: &'s [httparse::Header<'b>],
}

/// How content goes to the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// There is none.
    None,
    /// Unchanged, with a Content-Length of so many bytes.
    Length(u64),
    /// In chunks.
    Chunked,
    /// Unchanged, up to the end of the connection: for HTTP/1.0.
    Close,
}

/// Fields that the client gets beside those of the server.
#[derive(Clone, Copy, Debug, Default)]
pub struct Added<'a> {
    /// The affinity cookie.
    pub set_cookie: Option<&'a [u8]>,
    /// The value of Strict-Transport-Security (RFC 6797), unless the server has sent one.
    pub hsts: Option<&'a str>,
    /// Whole field lines.
    pub lines: &'a [u8],
}

const HSTS: &[u8] = b"Strict-Transport-Security";

/// Reads one response head from the front of `input`; `Ok(None)` asks for more bytes.
///
/// # Errors
/// See [`BadResponse`].
pub fn parse<'s, 'b>(
    input: &'b [u8],
    slots: &'s mut Slots<'b>,
    limit: usize,
    asked: Asked,
) -> Result<Option<Response<'s, 'b>>, BadResponse> {
    let mut parser = httparse::Response::new(&mut []);
    let config = httparse::ParserConfig::default();
    let parsed = config.parse_response_with_uninit_headers(&mut parser, input, &mut slots.0);
    let head_len = match parsed {
        Ok(httparse::Status::Complete(head_len)) if head_len <= limit => head_len,
        Ok(httparse::Status::Partial) if input.len() < limit => return Ok(None),
        Ok(_) => return Err(BadResponse::TooLong),
        Err(error) => return Err(BadResponse::Syntax(error)),
    };
    let version = if parser.version == Some(0) { Version::Http10 } else { Version::Http11 };
    let status = parser.code.unwrap_or_default();
    let (reason, lines) = (parser.reason.unwrap_or_default(), &*parser.headers);
    understand(version, status, reason, lines, head_len, asked).map(Some)
}

fn understand<'s, 'b>(
    version: Version,
    status: u16,
    reason: &'b str,
    lines: &'s [httparse::Header<'b>],
    head_len: usize,
    asked: Asked,
) -> Result<Response<'s, 'b>, BadResponse> {
    if !(100..600).contains(&status) {
        return Err(BadResponse::Status);
    }
    if status == 101 && !asked.upgrade {
        return Err(BadResponse::Upgrade);
    }
    if asked.tunnel && (200..300).contains(&status) {
        return Err(BadResponse::NoTunnel);
    }
    let mut framing = Framing::default();
    let (mut nominated, mut has_date, mut upgrade) = (Nominated::default(), false, None);
    for line in lines {
        match fields::kind(line.name.as_bytes()) {
            Kind::ContentLength => framing.content_length(line.value),
            Kind::TransferEncoding => framing.transfer_encoding(line.value),
            Kind::ContentType => framing.content_type(line.value),
            Kind::Connection => {
                framing.connection(line.value);
                nominated.add(line.value).map_err(|_| BadResponse::Connection)?;
            }
            Kind::Date => has_date = true,
            Kind::Upgrade => upgrade = Some(line.value),
            _ => {}
        }
    }
    let ending = Ending::of(asked.head, status, version, &framing)?;
    Ok(Response {
        version,
        status,
        head_len,
        keeps: ending.is_exact() && framing.keeps(version),
        ending,
        is_makeshift: false,
        reason,
        length: framing.length()?,
        has_date,
        upgrade,
        nominated,
        lines,
    })
}

impl Response<'_, '_> {
    /// The reason phrase.
    pub fn reason(&self) -> &str {
        self.reason
    }

    /// The length that it announces, with content or without.
    pub fn announced(&self) -> Option<u64> {
        self.length
    }

    /// The fields that do not concern this connection alone, without Content-Length.
    pub fn end_to_end(&self) -> impl Iterator<Item = (&[u8], &[u8])> + Clone {
        let lines = self.lines.iter().map(|line| (line.name.as_bytes(), line.value));
        lines.filter(|(name, _)| !self.is_hop_by_hop(name) && fields::kind(name) != Kind::Trailer)
    }

    /// The protocols that it says are spoken from here on, if `Connection` names `Upgrade` (RFC 9110 section 7.8).
    pub(crate) fn protocols(&self) -> impl Iterator<Item = &[u8]> {
        let says_so = self.nominated.contains(b"upgrade");
        let lines = self
            .lines
            .iter()
            .filter(move |line| says_so && fields::kind(line.name.as_bytes()) == Kind::Upgrade);
        lines.flat_map(|line| list(line.value))
    }

    /// Whether a final response follows.
    pub fn is_interim(&self) -> bool {
        self.status < 200 && self.status != 101
    }

    /// How its content goes to a client of the given version.
    pub fn delivery(&self, client: Version) -> Delivery {
        match (&self.ending, client) {
            (Ending::Head, _) => Delivery::None,
            (Ending::Length(length), _) => Delivery::Length(*length),
            (Ending::Chunked | Ending::Multipart(_) | Ending::Close, Version::Http10) => {
                Delivery::Close
            }
            (Ending::Chunked | Ending::Multipart(_) | Ending::Close, _) => Delivery::Chunked,
        }
    }

    /// Writes the head for the client, with fields that may be added.
    pub fn write(
        &self,
        out: &mut Vec<u8>,
        delivery: Delivery,
        connection: Connection,
        now_unix: u64,
        added: Added<'_>,
    ) {
        out.reserve(self.head_len + 128);
        self.put_status_line(out);
        if !self.has_date {
            // A recipient with a clock adds a missing Date (RFC 9110 section 6.6.1).
            put(out, b"Date", HttpDate::new(now_unix).as_bytes());
        }
        // Trailer is passed on only if the trailer fields are: from chunks to chunks.
        self.put_fields(out, delivery == Delivery::Chunked && self.ending == Ending::Chunked);
        self.put_added(out, added);
        match delivery {
            Delivery::Length(length) => put_length(out, length),
            Delivery::Chunked => put(out, b"Transfer-Encoding", b"chunked"),
            // The length that the answer to a GET would have (RFC 9110 section 8.6).
            Delivery::None if self.status != 204 => {
                if let Some(length) = self.length {
                    put_length(out, length);
                }
            }
            Delivery::None | Delivery::Close => {}
        }
        // A 426 names the protocols that would do, however the connection goes on (RFC 9110 section 15.5.22).
        match (connection, self.upgrade) {
            (Connection::Close, Some(protocols)) if self.status == 426 => {
                put(out, b"Connection", b"close, upgrade");
                put(out, b"Upgrade", protocols);
            }
            (Connection::Close, _) => put(out, b"Connection", b"close"),
            (_, Some(protocols)) if self.status == 426 => {
                put(out, b"Connection", b"upgrade");
                put(out, b"Upgrade", protocols);
            }
            (Connection::KeepAlive, _) => put(out, b"Connection", b"keep-alive"),
            (Connection::Implied, _) => {}
        }
        out.extend_from_slice(b"\r\n");
    }

    /// Writes an interim response.
    pub fn write_interim(&self, out: &mut Vec<u8>) {
        self.put_status_line(out);
        self.put_fields(out, false);
        out.extend_from_slice(b"\r\n");
    }

    /// Writes a 101, the last answer in HTTP of its connection, with fields that may be added.
    pub fn write_switch(&self, out: &mut Vec<u8>, added: Added<'_>) {
        self.put_status_line(out);
        self.put_fields(out, false);
        self.put_added(out, added);
        if let Some(protocol) = self.upgrade {
            put(out, b"Connection", b"upgrade");
            put(out, b"Upgrade", protocol);
        }
        out.extend_from_slice(b"\r\n");
    }

    fn put_added(&self, out: &mut Vec<u8>, added: Added<'_>) {
        if let Some(cookie) = added.set_cookie {
            put(out, b"Set-Cookie", cookie);
        }
        if let Some(value) = added.hsts.filter(|_| !self.has(HSTS)) {
            put(out, HSTS, value.as_bytes());
        }
        out.extend_from_slice(added.lines);
    }

    /// All field lines, in their order.
    pub fn lines(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.lines.iter().map(|line| (line.name.as_bytes(), line.value))
    }

    pub(crate) fn put_status_line(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"HTTP/1.1 ");
        out.extend_from_slice(itoa::Buffer::new().format(self.status).as_bytes());
        out.push(b' ');
        out.extend_from_slice(self.reason.as_bytes());
        out.extend_from_slice(b"\r\n");
    }

    /// The fields that may trail the content.
    pub(crate) fn may_trail(&self, asked: Asked) -> MayTrail {
        let lines = self.lines.iter().map(|line| (line.name.as_bytes(), line.value));
        MayTrail::of_response(lines, self.nominated, asked.trailers)
    }

    fn has(&self, name: &[u8]) -> bool {
        self.lines.iter().any(|line| line.name.as_bytes().eq_ignore_ascii_case(name))
    }

    fn put_fields(&self, out: &mut Vec<u8>, trailers: bool) {
        for line in self.lines {
            let name = line.name.as_bytes();
            let own = match fields::kind(name) {
                Kind::Trailer if !trailers => true,
                _ => self.is_hop_by_hop(name),
            };
            if !own {
                put(out, name, line.value);
            }
        }
    }

    /// Whether a field concerns only the connection to the server, or how this message is framed.
    fn is_hop_by_hop(&self, name: &[u8]) -> bool {
        match fields::kind(name) {
            Kind::Connection
            | Kind::HopByHop
            | Kind::ContentLength
            | Kind::TransferEncoding
            | Kind::Te
            | Kind::Upgrade => true,
            _ => self.nominated.contains(name),
        }
    }
}

#[cfg(test)]
mod tests;
