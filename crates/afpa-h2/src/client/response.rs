//! From the fields of a response to a head of HTTP/1.1 (RFC 9113 section 8).
//!
//! Faults that only HTTP/2 has are refused here, as *malformed*: pseudo-fields, upper case, fields about a connection.
//! Everything else is written down as HTTP/1.1 would have it, and the one parser of responses gives the verdict. Nothing
//! that is written can be read as anything but one status line and one line for each field: that is checked byte by byte.

use afpa_http::{Status, syntax::number};

use super::Tunnel;
use crate::head::{HeadText, Malformed, check_field};

/// How the content of a response is to be written for a reader of HTTP/1.1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Framing {
    /// There is none.
    #[default]
    None,
    /// As it is: Content-Length tells where it ends.
    Length,
    /// In chunks.
    Chunked,
    /// As it is: it is that of another protocol.
    Tunnel,
}

/// The facts of a response head that the connection itself needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Said {
    /// Another head follows.
    pub(super) interim: bool,
    /// The content that is to come, where that is known.
    pub(super) content_length: Option<u64>,
}

/// A response head that is being put together. One of them serves a connection, one head after the other.
#[derive(Debug, Default)]
pub struct ResponseHead {
    text: HeadText,
    status: Option<u16>,
    malformed: bool,
    /// Fields have begun; no pseudo-field may follow.
    begun: bool,
    framing: Framing,
    /// It may answer an extended CONNECT.
    may_switch: bool,
}

impl ResponseHead {
    /// The head as HTTP/1.1 has it; or the lines of a trailer section. If it was longer than the limit, it is cut behind
    /// it.
    pub fn text(&self) -> &[u8] {
        &self.text.bytes
    }

    /// How the content is to be written behind it.
    pub fn framing(&self) -> Framing {
        self.framing
    }

    /// Begins another head; `may_switch`: of the answer to an extended CONNECT.
    pub(super) fn begin(&mut self, most: usize, may_switch: bool) {
        let mut text = std::mem::take(&mut self.text);
        text.begin(most);
        *self = Self { text, may_switch, ..Self::default() };
    }

    /// Whether the stream is a tunnel from here on: in HTTP/1.1 its head is that of a change of protocols.
    pub(super) fn switches(&self) -> bool {
        self.may_switch && matches!(self.status, Some(200..=299))
    }

    /// Takes a field as it was decoded.
    pub(super) fn field(&mut self, name: &[u8], value: &[u8]) {
        // Fields beyond the limit are not looked at: they may be a bomb.
        if self.malformed || self.text.is_too_long(0) {
            return;
        }
        let taken = match name.first() {
            Some(b':') => self.pseudo_field(name, value),
            _ => self.plain_field(name, value),
        };
        self.malformed |= taken.is_err();
    }

    /// Section 8.3.2: `:status` alone, before all others.
    fn pseudo_field(&mut self, name: &[u8], value: &[u8]) -> Result<(), Malformed> {
        let status = number(value).and_then(|status| u16::try_from(status).ok());
        let status = status.filter(|_| value.len() == 3 && name == b":status").ok_or(Malformed)?;
        if self.begun || self.status.replace(status).is_some() {
            return Err(Malformed);
        }
        let (code, reason) = match self.switches() {
            true => (&b"101"[..], "Switching Protocols"),
            false => (value, reason(status)),
        };
        let text = &mut self.text.bytes;
        text.extend_from_slice(b"HTTP/1.1 ");
        text.extend_from_slice(code);
        text.push(b' ');
        text.extend_from_slice(reason.as_bytes());
        text.extend_from_slice(b"\r\n");
        Ok(())
    }

    fn plain_field(&mut self, name: &[u8], value: &[u8]) -> Result<(), Malformed> {
        self.begun = true;
        check_field(name, value)?;
        if self.switches() && matches!(name, b"content-length" | b"sec-websocket-accept") {
            // Content-Length means nothing here (RFC 9110 section 9.3.6), and Sec-WebSocket-Accept is ours (RFC 8441 section 5).
            return Ok(());
        }
        if name == b"content-length" {
            self.text.announce_length(value);
        }
        self.text.put_line(name, value);
        Ok(())
    }

    /// Completes a head. `end`: no content follows. `tunnel`: the protocol that was asked for, if the response may
    /// switch to one.
    pub(super) fn finish(
        &mut self,
        end: bool,
        asked_head: bool,
        tunnel: Option<&Tunnel>,
    ) -> Result<Said, Malformed> {
        let status = self.status.filter(|_| !self.malformed).ok_or(Malformed)?;
        if self.switches() {
            return self.finish_switch(tunnel.ok_or(Malformed)?);
        }
        let interim = status < 200;
        // HTTP/2 has no 101 (section 8.6), and another head must follow an interim one.
        if status == 101 || (interim && end) {
            return Err(Malformed);
        }
        let nothing = interim || asked_head || matches!(status, 204 | 304);
        let content_length = match (nothing, end) {
            (true, _) => Some(0),
            (false, true) => Some(self.text.content_length.unwrap_or(0)),
            (false, false) => self.text.content_length,
        };
        self.framing = match (nothing, self.text.announces_length) {
            (true, _) => Framing::None,
            (false, true) => Framing::Length,
            (false, false) if end => {
                self.text.put_line(b"content-length", b"0");
                Framing::Length
            }
            (false, false) => {
                self.text.put_line(b"transfer-encoding", b"chunked");
                Framing::Chunked
            }
        };
        self.text.cut_or_end();
        Ok(Said { interim, content_length })
    }

    /// Completes the head of a change of protocols (RFC 9110 section 15.2.2).
    fn finish_switch(&mut self, tunnel: &Tunnel) -> Result<Said, Malformed> {
        self.text.put_line(b"connection", b"upgrade");
        self.text.put_line(b"upgrade", &tunnel.protocol);
        if let Some(accept) = &tunnel.accept {
            self.text.put_line(b"sec-websocket-accept", accept.as_bytes());
        }
        self.framing = Framing::Tunnel;
        self.text.cut_or_end();
        Ok(Said { interim: false, content_length: None })
    }

    /// Completes a trailer section: field lines, without the blank line.
    pub(super) fn finish_trailers(&mut self) -> Result<(), Malformed> {
        let is_cut = self.text.is_too_long(0);
        match self.malformed || is_cut || self.status.is_some() || self.text.announces_length {
            true => Err(Malformed),
            false => Ok(()),
        }
    }
}

/// The reason phrase of a status, which HTTP/2 does not carry: that of the registry of IANA.
fn reason(status: u16) -> &'static str {
    Status::new(status).map_or("", Status::reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A head of these fields, and what the connection has to know of it.
    fn head(
        fields: &[(&str, &str)],
        end: bool,
        asked_head: bool,
    ) -> Result<(String, Framing, Said), Malformed> {
        let mut head = ResponseHead::default();
        head.begin(200, false);
        fields.iter().for_each(|(name, value)| head.field(name.as_bytes(), value.as_bytes()));
        let said = head.finish(end, asked_head, None)?;
        Ok((String::from_utf8_lossy(head.text()).into_owned(), head.framing(), said))
    }

    #[test]
    fn a_head_is_one_of_http11() {
        let ok = (":status", "200");
        let length = ("content-length", "5");
        for (fields, end, asked_head, text, framing, left) in [
            (&[ok, length][..], false, false, "content-length: 5\r\n", Framing::Length, Some(5)),
            (&[ok], false, false, "transfer-encoding: chunked\r\n", Framing::Chunked, None),
            (&[ok], true, false, "content-length: 0\r\n", Framing::Length, Some(0)),
            (&[ok, length], true, true, "content-length: 5\r\n", Framing::None, Some(0)),
            (&[ok], true, true, "", Framing::None, Some(0)),
        ] {
            let (said_text, said_framing, said) = head(fields, end, asked_head).unwrap();
            assert_eq!(said_text, format!("HTTP/1.1 200 OK\r\n{text}\r\n"));
            assert_eq!((said_framing, said.content_length), (framing, left));
        }
        let (text, framing, said) =
            head(&[(":status", "103"), ("link", "</a>")], false, false).unwrap();
        assert_eq!(text, "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n");
        assert!(said.interim && framing == Framing::None);
        let (text, ..) = head(&[(":status", "299"), ("a", "")], true, true).unwrap();
        assert_eq!(text, "HTTP/1.1 299 \r\na: \r\n\r\n");
    }

    #[test]
    fn what_only_http2_can_get_wrong_is_refused() {
        let ok = (":status", "200");
        for (fields, end) in [
            (&[("a", "b")][..], true),
            (&[("a", "b"), ok], true),
            (&[ok, ok], true),
            (&[ok, (":path", "/")], true),
            (&[(":status", "20")], true),
            (&[(":status", "+20")], true),
            (&[(":status", "0200")], true),
            (&[(":status", "101")], false),
            (&[(":status", "103")], true),
            (&[ok, ("A", "b")], true),
            (&[ok, ("a b", "b")], true),
            (&[ok, ("", "b")], true),
            (&[ok, ("a", "b\r\nx: y")], true),
            (&[ok, ("a", "b\0")], true),
            (&[ok, ("a", " b")], true),
            (&[ok, ("connection", "close")], true),
            (&[ok, ("transfer-encoding", "chunked")], false),
            (&[ok, ("upgrade", "h2c")], true),
        ] {
            assert_eq!(head(fields, end, false), Err(Malformed), "{fields:?}");
        }
    }

    #[test]
    fn a_long_head_is_cut_and_has_no_end() {
        let value = "v".repeat(150);
        let fields = [(":status", "200"), ("a", &value), ("b", &value), ("c", &value)];
        let (text, ..) = head(&fields, true, false).unwrap();
        assert!(text.len() == 201 && !text.ends_with("\r\n\r\n"));
    }

    #[test]
    fn reasons_are_found() {
        assert_eq!(
            (reason(200), reason(404), reason(511)),
            ("OK", "Not Found", "Network Authentication Required")
        );
        assert_eq!(reason(299), "");
    }
}
