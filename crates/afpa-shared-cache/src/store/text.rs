//! A stored head, and those of its values that are asked for, in one piece of memory.

use std::borrow::Cow;
use std::num::NonZeroU16;
use std::ops::Range;

use afpa_h3::section_of;
use smallvec::SmallVec;

/// A value that is asked for without reading the head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    ETag,
    LastModified,
    ContentType,
    ContentLanguage,
}

/// Where each value lies, if there is one.
type Spans = [Option<Span>; 4];

/// Where a value lies. The status line stands before all of them, so that none begins at 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    start: NonZeroU16,
    len: u16,
}

/// Bytes of the longest text that is kept. No head of a server is longer, but a value behind the head may not fit any
/// more.
const LONGEST: usize = u16::MAX as usize;

impl Span {
    /// `None`: the text is too long.
    fn of(range: &Range<usize>) -> Option<Self> {
        let start = NonZeroU16::new(u16::try_from(range.start).ok()?)?;
        Some(Self { start, len: u16::try_from(range.len()).ok()? })
    }

    fn range(self) -> Range<usize> {
        let start = usize::from(self.start.get());
        start..start.saturating_add(self.len.into())
    }
}

impl Value {
    /// The value of a field of this name.
    pub(crate) fn of(name: &[u8]) -> Option<Self> {
        let (value, known) = match name.len() {
            4 => (Self::ETag, "etag"),
            12 => (Self::ContentType, "content-type"),
            13 => (Self::LastModified, "last-modified"),
            16 => (Self::ContentLanguage, "content-language"),
            _ => return None,
        };
        name.eq_ignore_ascii_case(known.as_bytes()).then_some(value)
    }
}

/// A head, without Age, Content-Length and the empty line. Behind it lie the values that it does not have itself, and its field
/// section for HTTP/3, where that is spoken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Text {
    bytes: Box<[u8]>,
    head: u16,
    /// Bytes of the section at the end; 0: there is none.
    section: u16,
    spans: Spans,
}

impl Text {
    pub(crate) fn head(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.head)).unwrap_or_default()
    }

    /// The field section of the head for HTTP/3.
    pub(crate) fn section(&self) -> Option<&[u8]> {
        let start = self.bytes.len().checked_sub(self.section.into())?;
        self.bytes.get(start..).filter(|section| !section.is_empty())
    }

    pub(crate) fn value(&self, value: Value) -> Option<&[u8]> {
        let span = (*self.spans.get(value as usize)?)?;
        self.bytes.get(span.range())
    }

    /// Content-Type, which is text.
    pub(crate) fn content_type(&self) -> Option<&str> {
        std::str::from_utf8(self.value(Value::ContentType)?).ok()
    }

    /// Bytes of memory that it points at.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.len()
    }
}

/// Writes a text. Its buffer on the stack has room for most heads, so memory is allocated once, and only as much as is
/// needed.
pub(crate) struct Writer<'b> {
    bytes: SmallVec<[u8; 1024]>,
    spans: Spans,
    /// Values that are not in the head.
    behind: SmallVec<[(Value, Cow<'b, [u8]>); 1]>,
    has_section: bool,
}

impl<'b> Writer<'b> {
    pub(crate) fn new(status_line: &[u8]) -> Self {
        let mut writer = Self::after(status_line);
        writer.bytes.extend_from_slice(b"\r\n");
        writer
    }

    /// With a head that is complete.
    pub(crate) fn after(head: &[u8]) -> Self {
        let (spans, behind) = (Default::default(), SmallVec::new());
        Self { bytes: SmallVec::from_slice(head), spans, behind, has_section: false }
    }

    /// With the field section of the head for HTTP/3, if the text has room for it.
    pub(crate) fn with_section(self, has_section: bool) -> Self {
        Self { has_section, ..self }
    }

    /// Whether it has this value.
    pub(crate) fn has(&self, value: Value) -> bool {
        let is_behind = || self.behind.iter().any(|(other, _)| *other == value);
        self.spans.get(value as usize).is_some_and(Option::is_some) || is_behind()
    }

    /// Adds a field.
    pub(crate) fn put(&mut self, name: &[u8], value: &[u8]) {
        self.bytes.extend_from_slice(name);
        self.bytes.extend_from_slice(b": ");
        self.bytes.extend_from_slice(value);
        self.bytes.extend_from_slice(b"\r\n");
    }

    /// Adds a field, whose value is asked for.
    pub(crate) fn put_known(&mut self, known: Value, name: &[u8], value: &'b [u8]) {
        self.put(name, value);
        if known == Value::ContentType && std::str::from_utf8(value).is_err() {
            return self.put_behind(known, value);
        }
        let end = self.bytes.len().saturating_sub(b"\r\n".len());
        self.note(known, end.saturating_sub(value.len())..end);
    }

    /// Adds a value that the head has not.
    pub(crate) fn put_behind(&mut self, known: Value, value: &'b [u8]) {
        let value = match (known, String::from_utf8_lossy(value)) {
            (Value::ContentType, Cow::Owned(text)) => Cow::Owned(text.into_bytes()),
            _ => Cow::Borrowed(value),
        };
        self.behind.push((known, value));
    }

    /// `None`: it is too long.
    pub(crate) fn finish(mut self) -> Option<Text> {
        let head = self.bytes.len();
        for (value, bytes) in std::mem::take(&mut self.behind) {
            let start = self.bytes.len();
            self.bytes.extend_from_slice(&bytes);
            self.note(value, start..self.bytes.len());
        }
        let section = self.section(head);
        let head = u16::try_from(head).ok().filter(|_| self.bytes.len() <= LONGEST)?;
        self.bytes.extend_from_slice(&section);
        let section = u16::try_from(section.len()).unwrap_or_default();
        Some(Text { bytes: self.bytes.as_slice().into(), head, section, spans: self.spans })
    }

    /// The field section of a head of this length; empty: there is none.
    fn section(&self, head: usize) -> Vec<u8> {
        if !self.has_section {
            return Vec::new();
        }
        let text = [self.bytes.get(..head).unwrap_or_default(), b"\r\n"].concat();
        section_of(&text).filter(|section| section.len() <= LONGEST).unwrap_or_default()
    }

    fn note(&mut self, value: Value, range: Range<usize>) {
        if let Some(noted) = self.spans.get_mut(value as usize) {
            *noted = Span::of(&range);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_in_the_head_or_behind_it() {
        let mut writer = Writer::new(b"HTTP/1.1 200 OK");
        writer.put(b"Server", b"s");
        writer.put_known(Value::ETag, b"etag", b"\"1\"");
        writer.put_behind(Value::LastModified, b"yesterday");
        assert!(writer.has(Value::ETag) && writer.has(Value::LastModified));
        assert!(!writer.has(Value::ContentType));
        let text = writer.finish().expect("short");
        assert_eq!(text.head(), b"HTTP/1.1 200 OK\r\nServer: s\r\netag: \"1\"\r\n");
        assert_eq!(text.value(Value::ETag), Some(&b"\"1\""[..]));
        assert_eq!(text.value(Value::LastModified), Some(&b"yesterday"[..]));
        assert_eq!(text.value(Value::ContentLanguage), None);
        assert_eq!(text.bytes(), text.head().len() + "yesterday".len());
    }

    #[test]
    fn a_content_type_is_text_whatever_the_head_has() {
        for (value, expected) in [(&b"text/html"[..], "text/html"), (b"a/\xff", "a/\u{fffd}")] {
            let mut writer = Writer::new(b"HTTP/1.1 200 OK");
            writer.put_known(Value::ContentType, b"Content-Type", value);
            let text = writer.finish().expect("short");
            assert_eq!(text.content_type(), Some(expected));
            let head = [b"HTTP/1.1 200 OK\r\nContent-Type: ", value, b"\r\n"].concat();
            assert_eq!(text.head(), head);
        }
    }

    #[test]
    fn the_field_section_lies_behind_all_values() {
        let text = |has_section| {
            let mut writer = Writer::new(b"HTTP/1.1 404 Not Found").with_section(has_section);
            writer.put(b"X-Own", b"1");
            writer.put_behind(Value::ETag, b"\"1\"");
            writer.finish().expect("short")
        };
        let expected = section_of(b"HTTP/1.1 404 Not Found\r\nX-Own: 1\r\n\r\n");
        assert!(expected.is_some());
        assert_eq!(text(true).section(), expected.as_deref());
        assert_eq!(text(false).section(), None);
        assert_eq!(text(true).head(), text(false).head());
        assert_eq!(text(true).value(Value::ETag), Some(&b"\"1\""[..]));
        let broken = Writer::new(b"no status line").with_section(true).finish().expect("short");
        assert_eq!(broken.section(), None);
    }

    #[test]
    fn what_is_too_long_is_not_kept() {
        for (len, is_kept) in [(LONGEST, true), (LONGEST + 1, false)] {
            let mut writer = Writer::after(&vec![b'x'; len - 3]);
            writer.put_behind(Value::ETag, b"\"1\"");
            let etag = writer.finish().map(|text| text.value(Value::ETag) == Some(b"\"1\""));
            assert_eq!(etag, is_kept.then_some(true), "{len}");
        }
    }

    #[test]
    fn names_are_known_in_any_case() {
        assert_eq!(Value::of(b"ETAG"), Some(Value::ETag));
        assert_eq!(Value::of(b"Content-Language"), Some(Value::ContentLanguage));
        assert_eq!(Value::of(b"EtaX"), None);
    }
}
