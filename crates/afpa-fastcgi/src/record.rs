//! Records (FastCGI 1.0 section 3.3): a header of eight bytes, content, padding.

use crate::fault::Fault;

/// Bytes of a header.
pub(crate) const HEADER: usize = 8;

/// Where a header has the length of the content.
const LENGTH: usize = 4;

/// Bytes of the content of one record, at most.
pub(crate) const MOST_CONTENT: usize = 0xffff;

/// The number of every request.
pub(crate) const ID: u16 = 1;

const VERSION: u8 = 1;

/// The kinds of records that occur (section 8).
pub(crate) mod kind {
    pub(crate) const BEGIN_REQUEST: u8 = 1;
    pub(crate) const END_REQUEST: u8 = 3;
    pub(crate) const PARAMS: u8 = 4;
    pub(crate) const STDIN: u8 = 5;
    pub(crate) const STDOUT: u8 = 6;
    pub(crate) const STDERR: u8 = 7;
}

/// The header of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) kind: u8,
    pub(crate) id: u16,
    pub(crate) content: u16,
    pub(crate) padding: u8,
}

impl Header {
    /// Reads a header.
    pub(crate) fn of(bytes: [u8; HEADER]) -> Result<Self, Fault> {
        let [version, kind, id_1, id_0, content_1, content_0, padding, _] = bytes;
        if version != VERSION {
            return Err(Fault::Version(version));
        }
        let id = u16::from_be_bytes([id_1, id_0]);
        let content = u16::from_be_bytes([content_1, content_0]);
        Ok(Self { kind, id, content, padding })
    }
}

/// Appends the records of a stream that carry these bytes. No bytes are no record: an empty one would end the stream.
pub(crate) fn put_stream(out: &mut Vec<u8>, kind: u8, bytes: &[u8]) {
    for content in bytes.chunks(MOST_CONTENT) {
        put(out, kind, content);
    }
}

/// Appends the records of a stream whose bytes `fill` appends: one record without a copy of them, unless they are too
/// many for one.
pub(crate) fn put_filled(out: &mut Vec<u8>, kind: u8, fill: impl FnOnce(&mut Vec<u8>)) {
    let begin = out.len();
    put(out, kind, b"");
    let content = out.len();
    fill(out);
    match u16::try_from(out.len() - content) {
        Ok(length) => {
            let place = begin + LENGTH..begin + LENGTH + size_of::<u16>();
            out.splice(place, length.to_be_bytes());
        }
        Err(_) => {
            let filled = out.split_off(content);
            out.truncate(begin);
            put_stream(out, kind, &filled);
        }
    }
}

/// Appends one record.
pub(crate) fn put(out: &mut Vec<u8>, kind: u8, content: &[u8]) {
    debug_assert!(content.len() <= MOST_CONTENT, "the length has two bytes");
    let [id_1, id_0] = ID.to_be_bytes();
    let [length_1, length_0] = (content.len() as u16).to_be_bytes();
    out.extend_from_slice(&[VERSION, kind, id_1, id_0, length_1, length_0, 0, 0]);
    out.extend_from_slice(content);
}
