//! A response head as a field block that is made once and kept with a cache object.

use afpa_http::{HttpDate, ResponseHead};

use crate::code::FieldCode;
use crate::hpack::encode::Hpack;
use crate::response::CodedReader;

/// The field block of a head, complete but for the date (the papers' immutable header data, for HTTP/2).
///
/// Our blocks depend on nothing that was sent before (Y8 of docs/rules), and their values are not in Huffman
/// code, so the date can be patched as it is in a head of HTTP/1.1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldBlock {
    bytes: Box<[u8]>,
    date_offset: usize,
}

impl FieldBlock {
    /// The block of a head in HTTP/2; `None` if that is no head of a response, which no head of our own is.
    pub fn of(head: &ResponseHead) -> Option<Self> {
        Self::coded::<Hpack>(head)
    }

    /// The block of a head in a code.
    pub fn coded<C: FieldCode>(head: &ResponseHead) -> Option<Self> {
        let mut reader = CodedReader::<C>::new(false, false);
        reader.read(head.bytes()).ok()?;
        let epoch = HttpDate::new(0);
        let date_offset =
            reader.block().windows(HttpDate::LEN).position(|value| value == epoch.as_bytes())?;
        Some(Self { bytes: reader.block().into(), date_offset })
    }

    /// Its bytes.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    /// Appends the block with this date.
    #[inline]
    pub fn write(&self, out: &mut Vec<u8>, date: &HttpDate) {
        let start = out.len() + self.date_offset;
        out.extend_from_slice(&self.bytes);
        if let Some(place) = out.get_mut(start..start + HttpDate::LEN) {
            place.copy_from_slice(date.as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hpack::Decoder;
    use afpa_http::Status;

    #[test]
    fn it_says_what_the_head_says() {
        let head = ResponseHead::build(Status::OK)
            .field("Content-Type", "text/plain")
            .content_length(5)
            .last_modified(0)
            .field("X-Own", "value")
            .finish();
        let block = FieldBlock::of(&head).unwrap();
        let mut out = b"before".to_vec();
        block.write(&mut out, &HttpDate::new(784_111_777));
        let mut said = String::new();
        let text = |bytes: &[u8]| bytes.escape_ascii().to_string();
        Decoder::default()
            .decode(&out[6..], |name, value| said += &format!("{}: {}\n", text(name), text(value)))
            .unwrap();
        assert_eq!(
            said,
            ":status: 200\ndate: Sun, 06 Nov 1994 08:49:37 GMT\nserver: afpa\n\
             content-type: text/plain\ncontent-length: 5\n\
             last-modified: Thu, 01 Jan 1970 00:00:00 GMT\nx-own: value\n"
        );
    }
}
