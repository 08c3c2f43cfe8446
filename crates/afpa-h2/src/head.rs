//! A head of HTTP/1.1 that is written from the fields of HTTP/2 (RFC 9113 section 8.2): the common part of
//! [requests](crate::request) and [responses](crate::client::response).
//!
//! Nothing that is written can be read as anything but one line for each field: that is checked byte by byte.

use afpa_http::syntax::number;

/// This is no message of HTTP/2 (RFC 9113 section 8.1.1). Its stream ends with PROTOCOL_ERROR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// The head as far as it is written.
#[derive(Debug, Default)]
pub(crate) struct HeadText {
    pub(crate) bytes: Vec<u8>,
    /// The longest head that is written whole.
    pub(crate) most: usize,
    /// The content that Content-Length announces. The parser refuses a value that is no number, and a repeated field.
    pub(crate) content_length: Option<u64>,
    pub(crate) announces_length: bool,
}

impl HeadText {
    /// Begins another head, of so many bytes at most; the memory stays.
    pub(crate) fn begin(&mut self, most: usize) {
        self.bytes.clear();
        self.most = most;
        self.content_length = None;
        self.announces_length = false;
    }

    /// Whether the head is longer than the limit, with so many bytes that are still to be written.
    #[inline]
    pub(crate) fn is_too_long(&self, more: usize) -> bool {
        self.bytes.len() + more > self.most
    }

    pub(crate) fn announce_length(&mut self, value: &[u8]) {
        self.announces_length = true;
        self.content_length = number(value);
    }

    pub(crate) fn put_line(&mut self, name: &[u8], value: &[u8]) {
        self.bytes.reserve(name.len() + value.len() + 4);
        self.bytes.extend_from_slice(name);
        self.bytes.extend_from_slice(b": ");
        self.bytes.extend_from_slice(value);
        self.bytes.extend_from_slice(b"\r\n");
    }

    /// A head beyond the limit is left without its end: it cannot be taken for a whole one.
    pub(crate) fn cut_or_end(&mut self) {
        if self.is_too_long(0) {
            self.bytes.truncate(self.most + 1);
        } else {
            self.bytes.extend_from_slice(b"\r\n");
        }
    }
}

/// A field that is none of a connection (section 8.2.2), with a name and a value of section 8.2.1.
#[inline]
pub(crate) fn check_field(name: &[u8], value: &[u8]) -> Result<(), Malformed> {
    let is_about_connection = matches!(
        name,
        b"connection" | b"proxy-connection" | b"keep-alive" | b"transfer-encoding" | b"upgrade"
    );
    match is_about_connection || !is_name(name) || !is_value(value) {
        true => Err(Malformed),
        false => Ok(()),
    }
}

/// A name of section 8.2.1: a token without upper case.
#[inline]
fn is_name(name: &[u8]) -> bool {
    const GOOD: [bool; 256] = {
        let mut good = [false; 256];
        let others = b"!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz";
        let mut at = 0;
        while at < others.len() {
            good[others[at] as usize] = true;
            at += 1;
        }
        good
    };
    !name.is_empty() && name.iter().fold(true, |good, byte| good & GOOD[usize::from(*byte)])
}

/// A value that section 8.2.1 allows. Other control characters are the parser's concern.
#[inline]
pub(crate) fn is_value(value: &[u8]) -> bool {
    let inner = value.iter().fold(true, |good, byte| good & !matches!(byte, 0 | b'\r' | b'\n'));
    let edge = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    inner && !edge(value.first()) && !edge(value.last())
}

/// Bytes that end neither a word nor a line.
pub(crate) fn is_word(word: &[u8]) -> bool {
    !word.is_empty() && word.iter().fold(true, |good, byte| good & (*byte > b' ' && *byte != 0x7f))
}
