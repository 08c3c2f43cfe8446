//! The content of a 206 with several ranges: `multipart/byteranges` (RFC 9110 section 14.6).

use std::ops::Range;

use crate::range::content_range;

/// The line between parts (RFC 2046 section 5.1.1).
///
/// It is made from 128 random bits of the caller, so that no file can be made to contain it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Boundary(String);

impl Boundary {
    /// 32 hexadecimal digits.
    pub fn new(random: u128) -> Boundary {
        Boundary(format!("{random:032x}"))
    }

    /// The boundary without the dashes before it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A multipart body that is about to be sent: for each part its head, then the bytes of its range,
/// and in the end the closing delimiter.
#[derive(Clone, Debug)]
pub struct Multipart {
    boundary: Boundary,
    parts: Vec<Part>,
    closing: Vec<u8>,
}

/// One part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Delimiter, Content-Type, Content-Range and blank line.
    pub head: Vec<u8>,
    /// The bytes of the representation that follow.
    pub range: Range<u64>,
}

impl Multipart {
    /// Lays out the body for ranges of a representation of `length` bytes with the given media
    /// type.
    ///
    /// The media type is one of ours, not of the client; line ends in it would break the body, so
    /// they are replaced as in [`HeadBuilder::field`](crate::head::HeadBuilder::field).
    pub fn new(
        boundary: Boundary,
        content_type: &str,
        length: u64,
        ranges: &[Range<u64>],
    ) -> Multipart {
        let content_type = content_type.replace(|c: char| c.is_ascii_control(), " ");
        let part = |(index, range): (usize, &Range<u64>)| Part {
            head: format!(
                "{}--{}\r\nContent-Type: {content_type}\r\nContent-Range: {}\r\n\r\n",
                if index == 0 { "" } else { "\r\n" },
                boundary.as_str(),
                content_range(range, length),
            )
            .into_bytes(),
            range: range.clone(),
        };
        let parts = ranges.iter().enumerate().map(part).collect();
        let closing = format!("\r\n--{}--\r\n", boundary.as_str()).into_bytes();
        Multipart { boundary, parts, closing }
    }

    /// The Content-Type of the response.
    pub fn content_type(&self) -> String {
        format!("multipart/byteranges; boundary={}", self.boundary.as_str())
    }

    /// The Content-Length of the response: exactly what parts and closing delimiter add up to.
    pub fn content_length(&self) -> u64 {
        let part = |part: &Part| part.head.len() as u64 + (part.range.end - part.range.start);
        self.parts.iter().map(part).sum::<u64>() + self.closing.len() as u64
    }

    /// The parts in the order to send them.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// The bytes behind the last part.
    pub fn closing(&self) -> &[u8] {
        &self.closing
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sent(multipart: &Multipart, content: &[u8]) -> Vec<u8> {
        let mut body = Vec::new();
        for part in multipart.parts() {
            body.extend_from_slice(&part.head);
            body.extend_from_slice(&content[part.range.start as usize..part.range.end as usize]);
        }
        body.extend_from_slice(multipart.closing());
        body
    }

    #[test]
    fn the_body_is_that_of_the_rfc() {
        let multipart =
            Multipart::new(Boundary::new(255), "text/plain\r\nX: y", 10, &[0..2, 8..10]);
        let dash = "--000000000000000000000000000000ff";
        let expected = format!(
            "{dash}\r\nContent-Type: text/plain  X: y\r\nContent-Range: bytes 0-1/10\r\n\r\nab\r\n\
             {dash}\r\nContent-Type: text/plain  X: y\r\nContent-Range: bytes 8-9/10\r\n\r\nij\r\n\
             {dash}--\r\n"
        );
        assert_eq!(String::from_utf8(sent(&multipart, b"abcdefghij")).unwrap(), expected);
        let boundary = "multipart/byteranges; boundary=000000000000000000000000000000ff";
        assert_eq!(multipart.content_type(), boundary);
    }

    proptest! {
        #[test]
        fn the_announced_length_is_exact(
            random: u128,
            cuts in proptest::collection::vec(0u64..200, 2..12),
        ) {
            let content = vec![b'x'; 200];
            let ranges: Vec<_> = cuts.windows(2)
                .map(|pair| pair[0].min(pair[1])..pair[0].max(pair[1]) + 1)
                .collect();
            let multipart = Multipart::new(Boundary::new(random), "image/png", 200, &ranges);
            let body = sent(&multipart, &content);
            prop_assert_eq!(multipart.content_length(), body.len() as u64);
        }
    }
}
