//! From the fields of a request to a head of HTTP/1.1 (RFC 9113 section 8).
//!
//! Faults that only HTTP/2 has are refused here, as *malformed*: pseudo-fields, upper case, fields about a connection.
//! Everything else is written down as HTTP/1.1 would have it, and the one parser of requests gives the verdict.
//! Nothing that is written can be read as anything but one request line and one line for each field: that is checked
//! byte by byte.

use std::hash::{BuildHasher, RandomState};
use std::ops::Range;

pub use crate::head::Malformed;
use crate::head::{HeadText, check_field, is_value, is_word};
use crate::priority::Urgency;

/// How the content of a request is to be written for a reader of HTTP/1.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// There is none.
    None,
    /// As it is: Content-Length tells where it ends.
    Length,
    /// In chunks.
    Chunked,
    /// As it is: the request asks for another protocol (RFC 8441).
    Tunnel,
}

/// The facts of a request head that the connection itself needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The content that the client has announced.
    pub content_length: Option<u64>,
    /// Of the response.
    pub priority: Urgency,
}

/// A request head that is being put together. One of them serves all connections of a core, one after the other.
#[derive(Debug)]
pub struct RequestHead {
    text: HeadText,
    /// Cookies come in several fields (section 8.2.3).
    cookies: Vec<u8>,
    /// The values of pseudo-fields, one behind the other.
    pseudo: Vec<u8>,
    places: [Option<Range<usize>>; PSEUDO],
    malformed: bool,
    /// Fields have begun; no pseudo-field may follow.
    begun: bool,
    /// Host has stood beside `:authority`.
    names_host: bool,
    expects: bool,
    priority: Urgency,
    framing: Framing,
    /// The beginnings of heads that were no requests.
    refused: Vec<Vec<u8>>,
}

/// So many are kept for logs until they are taken, and so many bytes of a value of theirs.
const MOST_REFUSED: usize = 16;
const LONGEST_REFUSED: usize = 1024;

const PSEUDO: usize = 5;
const METHOD: usize = 0;
const SCHEME: usize = 1;
const AUTHORITY: usize = 2;
const PATH: usize = 3;
const PROTOCOL: usize = 4;

impl Default for RequestHead {
    fn default() -> Self {
        Self {
            text: HeadText::default(),
            cookies: Vec::new(),
            pseudo: Vec::new(),
            places: Default::default(),
            malformed: false,
            begun: false,
            names_host: false,
            expects: false,
            priority: Urgency::default(),
            framing: Framing::None,
            refused: Vec::new(),
        }
    }
}

impl RequestHead {
    /// The head as HTTP/1.1 has it. If it was longer than the limit, it is cut behind it.
    pub fn text(&self) -> &[u8] {
        &self.text.bytes
    }

    /// How the content of the request is to be written behind it.
    pub fn framing(&self) -> Framing {
        self.framing
    }

    /// Whether the request's method is HEAD.
    pub fn asks_head(&self) -> bool {
        self.text().starts_with(b"HEAD ")
    }

    /// Whether the client sends its content only after an answer, be it an interim one (RFC 9110 section 10.1.1) or that
    /// of CONNECT.
    pub fn waits_for_answer(&self) -> bool {
        self.expects || self.framing == Framing::Tunnel || self.text().starts_with(b"CONNECT ")
    }

    /// Begins another head, of so many bytes at most; the memory stays.
    pub fn begin(&mut self, most: usize) {
        self.text.begin(most);
        self.cookies.clear();
        self.pseudo.clear();
        self.places = Default::default();
        self.malformed = false;
        self.begun = false;
        self.names_host = false;
        self.expects = false;
        self.priority = Urgency::default();
        self.framing = Framing::None;
    }

    /// Takes a field as it was decoded.
    #[inline]
    pub fn field(&mut self, name: &[u8], value: &[u8]) {
        // Fields beyond the limit are not looked at: they may be a bomb.
        if self.malformed || self.text.is_too_long(self.cookies.len()) {
            return;
        }
        let taken = match name.first() {
            Some(b':') => self.pseudo_field(name, value),
            _ => self.plain_field(name, value),
        };
        self.malformed |= taken.is_err();
    }

    /// Section 8.3: before all others, each once.
    fn pseudo_field(&mut self, name: &[u8], value: &[u8]) -> Result<(), Malformed> {
        let which = match name {
            b":method" => METHOD,
            b":scheme" => SCHEME,
            b":authority" => AUTHORITY,
            b":path" => PATH,
            b":protocol" => PROTOCOL,
            _ => return Err(Malformed),
        };
        let place = self.places.get_mut(which).ok_or(Malformed)?;
        if self.begun || place.is_some() {
            return Err(Malformed);
        }
        // One that is longer than a head may be makes the head too long, wherever it stands among the others.
        let value = value.get(..=self.text.most).unwrap_or(value);
        let start = self.pseudo.len();
        self.pseudo.extend_from_slice(value);
        *place = Some(start..self.pseudo.len());
        Ok(())
    }

    fn plain_field(&mut self, name: &[u8], value: &[u8]) -> Result<(), Malformed> {
        if !self.begun {
            self.begin_fields()?;
        }
        check_field(name, value)?;
        match name {
            // Section 8.2.2.
            b"te" if value != b"trailers" => return Err(Malformed),
            b"cookie" => {
                if !self.cookies.is_empty() {
                    self.cookies.extend_from_slice(b"; ");
                }
                self.cookies.extend_from_slice(value);
                return Ok(());
            }
            b"host" if !self.value(AUTHORITY).is_empty() => {
                // Two host names in one request are an attack (section 8.3.1), and so is a name that stands twice.
                let same = self.value(AUTHORITY).eq_ignore_ascii_case(value);
                let is_first = !std::mem::replace(&mut self.names_host, true);
                return if same && is_first { Ok(()) } else { Err(Malformed) };
            }
            // RFC 8441 section 5: it is not used, and the one for the server is ours.
            b"sec-websocket-key" if self.framing == Framing::Tunnel => return Ok(()),
            b"content-length" => self.text.announce_length(value),
            b"expect" => self.expects = true,
            b"priority" => self.priority = Urgency::parse(value),
            _ => {}
        }
        self.text.put_line(name, value);
        Ok(())
    }

    /// The pseudo-fields are complete: writes the request line and Host.
    fn begin_fields(&mut self) -> Result<(), Malformed> {
        self.begun = true;
        let Self { text: HeadText { bytes: text, .. }, pseudo, places, .. } = self;
        let value = |which: usize| {
            let place = places.get(which).cloned().flatten();
            place.and_then(|place| pseudo.get(place))
        };
        let Some(method) = value(METHOD) else {
            // Trailers have none at all, which `finish` makes sure of.
            return if pseudo.is_empty() { Ok(()) } else { Err(Malformed) };
        };
        let (scheme, authority, path) = (value(SCHEME), value(AUTHORITY), value(PATH));
        if !is_word(method) || !authority.is_none_or(is_value) {
            return Err(Malformed);
        }
        let protocol = value(PROTOCOL);
        let is_connect = method == b"CONNECT";
        let (method, target): (&[u8], _) = match (protocol, is_connect) {
            // Section 8.5: neither scheme nor path.
            (None, true) if scheme.is_none() && path.is_none() => (method, authority),
            (None, false) => (method, path_of(scheme, path)),
            // RFC 8441 section 4. For a protocol without a counterpart in HTTP/1.1 the parser gets a CONNECT.
            (Some(b"websocket"), true) => (b"GET", path_of(scheme, path)),
            (Some(_), true) if path_of(scheme, path).is_some() => (method, authority),
            _ => return Err(Malformed),
        };
        let target = target.filter(|target| is_word(target)).ok_or(Malformed)?;
        text.extend_from_slice(method);
        text.push(b' ');
        text.extend_from_slice(target);
        text.extend_from_slice(b" HTTP/1.1\r\n");
        if let Some(authority @ [_, ..]) = authority {
            text.extend_from_slice(b"Host: ");
            text.extend_from_slice(authority);
            text.extend_from_slice(b"\r\n");
        }
        if protocol == Some(b"websocket") {
            self.framing = Framing::Tunnel;
            text.extend_from_slice(
                b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: ",
            );
            put_key(text);
            text.extend_from_slice(b"\r\n");
        }
        Ok(())
    }

    /// The rest of the head is not looked at: it is longer than the limit, and is refused for its length.
    pub fn cut(&mut self) {
        let most = self.text.most;
        self.text.bytes.resize(self.text.bytes.len().max(most + 1), b'a');
    }

    /// Completes a request. `end`: it has no content.
    ///
    /// # Errors
    /// [`Malformed`]: this is no request.
    pub fn finish(&mut self, end: bool) -> Result<Asked, Malformed> {
        let finished = self.try_finish(end);
        if finished.is_err() && self.refused.len() < MOST_REFUSED {
            self.refused.push(self.said());
        }
        finished
    }

    /// The heads since the last time that were no requests, for logs: request lines and Host as HTTP/1.1 has them, as far as they
    /// could be read.
    pub fn take_refused(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.refused)
    }

    fn said(&self) -> Vec<u8> {
        let mut said = Vec::new();
        for (which, behind) in
            [(METHOD, &b" "[..]), (PATH, b" HTTP/1.1\r\nhost: "), (AUTHORITY, b"\r\n")]
        {
            let value = self.value(which);
            let value = value.get(..LONGEST_REFUSED).unwrap_or(value);
            match (value, which) {
                ([], METHOD | PATH) => said.push(b'-'),
                _ => said.extend(value.iter().map(|byte| match byte {
                    0..=b' ' | 0x7f => b'?',
                    byte => *byte,
                })),
            }
            said.extend_from_slice(behind);
        }
        said
    }

    fn try_finish(&mut self, end: bool) -> Result<Asked, Malformed> {
        if !self.begun && !self.malformed {
            self.malformed = self.begin_fields().is_err();
        }
        let announced = self.text.content_length.unwrap_or_default();
        if self.malformed || self.places.get(METHOD).is_none_or(Option::is_none) {
            return Err(Malformed);
        }
        let is_tunnel = self.framing == Framing::Tunnel;
        if (end && (announced > 0 || is_tunnel)) || (is_tunnel && self.text.announces_length) {
            return Err(Malformed);
        }
        self.put_cookies();
        if !end && !is_tunnel {
            self.framing = match self.text.announces_length {
                true => Framing::Length,
                false => Framing::Chunked,
            };
        }
        if self.framing == Framing::Chunked {
            // It is not the name of a field that the client may use, so it stands only once.
            self.text.bytes.extend_from_slice(b"Transfer-Encoding: chunked\r\n");
        }
        self.text.cut_or_end();
        Ok(Asked { content_length: self.text.content_length, priority: self.priority })
    }

    /// Completes a trailer section: field lines, without the blank line.
    ///
    /// # Errors
    /// [`Malformed`]: this is no trailer section.
    pub fn finish_trailers(&mut self) -> Result<(), Malformed> {
        self.put_cookies();
        let too_long = self.text.is_too_long(0);
        if self.malformed || too_long || !self.pseudo.is_empty() || self.text.announces_length {
            return Err(Malformed);
        }
        Ok(())
    }

    fn put_cookies(&mut self) {
        if !self.cookies.is_empty() {
            let cookies = std::mem::take(&mut self.cookies);
            self.text.put_line(b"cookie", &cookies);
            self.cookies = cookies;
        }
    }

    fn value(&self, which: usize) -> &[u8] {
        let place = self.places.get(which).cloned().flatten();
        place.and_then(|place| self.pseudo.get(place)).unwrap_or_default()
    }
}

/// The path of a scheme that is served; it is never empty (section 8.3.1), and never an absolute form.
fn path_of<'a>(scheme: Option<&[u8]>, path: Option<&'a [u8]>) -> Option<&'a [u8]> {
    let known = matches!(scheme?, b"http" | b"https");
    path.filter(|path| known && (path.starts_with(b"/") || *path == b"*"))
}

/// Sixteen random bytes in base 64 (RFC 6455 section 4.1). The server's answer to them is not needed, because frames
/// of HTTP/2 cannot be mistaken for a handshake.
fn put_key(out: &mut Vec<u8>) {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let half = || u128::from(RandomState::new().hash_one(()));
    let bits = half() << 64 | half();
    // 128 bits are 21 digits of 6 bits and one of 2.
    for at in 0..22 {
        let digit = if at == 21 { bits << 4 } else { bits >> (122 - 6 * at) };
        out.extend(DIGITS.get((digit & 63) as usize));
    }
    out.extend_from_slice(b"==");
}

#[cfg(test)]
mod tests;
