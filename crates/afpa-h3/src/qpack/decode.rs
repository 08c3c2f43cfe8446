//! Field sections of clients (RFC 9204 section 4.5).

use afpa_h2::hpack::{huffman, integer};

use super::statics;

/// A field section that cannot be decoded. The connection ends with QPACK_DECOMPRESSION_FAILED (section 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QpackError {
    /// It refers to the dynamic table, which has no entries.
    #[error("a field refers to the dynamic table, which is empty")]
    Dynamic,
    /// An index beyond the static table.
    #[error("a field refers to an entry that does not exist")]
    Index,
    /// A number or text that ends behind the section, or a number that is too large.
    #[error("a field section ends within a field")]
    Truncated,
    /// A broken Huffman code.
    #[error("a Huffman code is broken")]
    Huffman,
}

/// Room for texts in Huffman code, which one section after another uses.
#[derive(Debug, Default)]
pub struct Rooms {
    name: Vec<u8>,
    value: Vec<u8>,
}

/// Bytes of a room that are kept for the next section: a path, or the name of a browser.
const KEPT: usize = 512;

impl Rooms {
    /// As [`decode`].
    ///
    /// # Errors
    /// See [`QpackError`].
    pub fn decode(
        &mut self,
        section: &[u8],
        field: impl FnMut(&[u8], &[u8]),
    ) -> Result<(), QpackError> {
        let decoded = decode_by(self, section, field);
        for room in [&mut self.name, &mut self.value] {
            if room.capacity() > KEPT {
                *room = Vec::new();
            }
        }
        decoded
    }
}

/// Decodes a whole field section; `field` gets the name and the value of each field in order.
///
/// # Errors
/// See [`QpackError`].
pub fn decode(section: &[u8], field: impl FnMut(&[u8], &[u8])) -> Result<(), QpackError> {
    Rooms::default().decode(section, field)
}

fn decode_by(
    Rooms { name: name_room, value: value_room }: &mut Rooms,
    section: &[u8],
    mut field: impl FnMut(&[u8], &[u8]),
) -> Result<(), QpackError> {
    let mut rest = after_prefix(section)?;
    while let Some(&first) = rest.first() {
        let length = match first {
            // Indexed field line (section 4.5.2); the second bit says: of the static table.
            0x80.. => {
                let (index, length) = integer::read(rest, 6).ok_or(QpackError::Truncated)?;
                let (name, value) = entry(index, first & 0x40 != 0)?;
                field(name, value);
                length
            }
            // Literal field line with name reference (section 4.5.4).
            0x40..0x80 => {
                let (index, at) = integer::read(rest, 4).ok_or(QpackError::Truncated)?;
                let (name, _) = entry(index, first & 0x10 != 0)?;
                let (value, length) = text(rest, at, 7, value_room)?;
                field(name, value);
                length
            }
            // Literal field line with literal name (section 4.5.6).
            0x20..0x40 => {
                let (name, at) = text(rest, 0, 3, name_room)?;
                let (value, length) = text(rest, at, 7, value_room)?;
                field(name, value);
                length
            }
            // With a post-base index (sections 4.5.3 and 4.5.5).
            _ => return Err(QpackError::Dynamic),
        };
        rest = rest.get(length..).ok_or(QpackError::Truncated)?;
    }
    Ok(())
}

/// The lines behind the prefix (section 4.5.1). A Required Insert Count of 0 is the only one that an empty table can have;
/// then the Base means nothing.
fn after_prefix(section: &[u8]) -> Result<&[u8], QpackError> {
    let (count, at) = integer::read(section, 8).ok_or(QpackError::Truncated)?;
    if count != 0 {
        return Err(QpackError::Dynamic);
    }
    let rest = section.get(at..).unwrap_or_default();
    let (_, at) = integer::read(rest, 7).ok_or(QpackError::Truncated)?;
    rest.get(at..).ok_or(QpackError::Truncated)
}

fn entry(index: usize, is_static: bool) -> Result<(&'static [u8], &'static [u8]), QpackError> {
    match is_static {
        true => statics::FIELDS.get(index).copied().ok_or(QpackError::Index),
        false => Err(QpackError::Dynamic),
    }
}

/// A text at `at`, whose length has a prefix of so many bits with the Huffman bit before them (section 4.1.2), and where
/// it ends.
fn text<'a>(
    input: &'a [u8],
    at: usize,
    prefix: u32,
    room: &'a mut Vec<u8>,
) -> Result<(&'a [u8], usize), QpackError> {
    let input = input.get(at..).ok_or(QpackError::Truncated)?;
    let is_coded = input.first().is_some_and(|first| first & (1 << prefix) != 0);
    let (length, start) = integer::read(input, prefix).ok_or(QpackError::Truncated)?;
    let end = start.checked_add(length).ok_or(QpackError::Truncated)?;
    let bytes = input.get(start..end).ok_or(QpackError::Truncated)?;
    if !is_coded {
        return Ok((bytes, at + end));
    }
    room.clear();
    huffman::decode(bytes, room).map_err(|_| QpackError::Huffman)?;
    Ok((room, at + end))
}
