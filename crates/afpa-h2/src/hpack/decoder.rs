//! Field blocks of clients (RFC 7541 section 6).

use super::{TABLE_SIZE, huffman, integer, statics, table::Table};

/// A field block that cannot be decoded. Nothing behind it on the connection can be either.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HpackError {
    /// An index that neither table has.
    #[error("a field refers to an entry that does not exist")]
    Index,
    /// A number or text that ends behind the block, or a number that is too large.
    #[error("a field block ends within a field")]
    Truncated,
    /// A broken Huffman code.
    #[error("a Huffman code is broken")]
    Huffman,
    /// A table size update that is too large, or not at the front.
    #[error("a table size update is too large, or not at the front of its block")]
    TableSize,
}

/// Decodes the field blocks of one connection, in order.
#[derive(Debug)]
pub struct Decoder {
    table: Table,
    /// A name and a value out of Huffman codes, or a name out of the table.
    name: Vec<u8>,
    value: Vec<u8>,
}

impl Default for Decoder {
    fn default() -> Self {
        Self { table: Table::new(TABLE_SIZE), name: Vec::new(), value: Vec::new() }
    }
}

impl Decoder {
    /// Decodes a whole block; `field` gets the name and the value of each field in order.
    ///
    /// # Errors
    /// See [`HpackError`]; the connection has to end with COMPRESSION_ERROR.
    pub fn decode(
        &mut self,
        block: &[u8],
        mut field: impl FnMut(&[u8], &[u8]),
    ) -> Result<(), HpackError> {
        let mut rest = block;
        let mut may_resize = true;
        while let Some(&first) = rest.first() {
            let length = if first & 0x80 != 0 {
                let (index, length) = integer::read(rest, 7).ok_or(HpackError::Truncated)?;
                let (name, value) = self.entry(index)?;
                field(name, value);
                length
            } else if first & 0xe0 == 0x20 {
                if !may_resize {
                    return Err(HpackError::TableSize);
                }
                self.resize(rest)?
            } else {
                // With incremental indexing (01), without (0000), never indexed (0001).
                let (indexed, prefix) = if first & 0x40 != 0 { (true, 6) } else { (false, 4) };
                self.literal(rest, prefix, indexed, &mut field)?
            };
            may_resize &= first & 0xe0 == 0x20;
            rest = rest.get(length..).ok_or(HpackError::Truncated)?;
        }
        Ok(())
    }

    fn resize(&mut self, input: &[u8]) -> Result<usize, HpackError> {
        let (size, length) = integer::read(input, 5).ok_or(HpackError::Truncated)?;
        if self.table.resize(size) { Ok(length) } else { Err(HpackError::TableSize) }
    }

    fn literal(
        &mut self,
        input: &[u8],
        prefix: u32,
        indexed: bool,
        field: &mut impl FnMut(&[u8], &[u8]),
    ) -> Result<usize, HpackError> {
        let (index, mut at) = integer::read(input, prefix).ok_or(HpackError::Truncated)?;
        let Self { table, name: name_room, value: value_room } = self;
        let name = match index {
            0 => {
                let (name, length) = text(input.get(at..).unwrap_or_default(), name_room)?;
                at += length;
                name
            }
            // Inserting the field may evict the entry of its name (section 4.4), so it is copied.
            index => {
                let (name, _) = entry(table, index)?;
                name_room.clear();
                name_room.extend_from_slice(name);
                name_room
            }
        };
        let (value, length) = text(input.get(at..).unwrap_or_default(), value_room)?;
        at += length;
        if indexed {
            table.insert(name, value);
        }
        field(name, value);
        Ok(at)
    }

    fn entry(&self, index: usize) -> Result<(&[u8], &[u8]), HpackError> {
        entry(&self.table, index)
    }
}

#[inline]
fn entry(table: &Table, index: usize) -> Result<(&[u8], &[u8]), HpackError> {
    let place = index.checked_sub(1).ok_or(HpackError::Index)?;
    match statics::FIELDS.get(place) {
        Some(field) => Ok(*field),
        None => table.get(place - statics::FIELDS.len()).ok_or(HpackError::Index),
    }
}

/// A text (section 5.2), and how many bytes it took.
fn text<'a>(input: &'a [u8], room: &'a mut Vec<u8>) -> Result<(&'a [u8], usize), HpackError> {
    let (length, at) = integer::read(input, 7).ok_or(HpackError::Truncated)?;
    let end = at.checked_add(length).ok_or(HpackError::Truncated)?;
    let bytes = input.get(at..end).ok_or(HpackError::Truncated)?;
    if input.first().is_some_and(|first| first & 0x80 == 0) {
        return Ok((bytes, end));
    }
    room.clear();
    huffman::decode(bytes, room).map_err(|_| HpackError::Huffman)?;
    Ok((room, end))
}
