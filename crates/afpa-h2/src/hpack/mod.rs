//! Header compression (RFC 7541).
//!
//! The [`Decoder`] reads what clients send: indexed fields, literals, Huffman codes, a dynamic table of 4096 bytes.
//! The [`encode`] side uses the static table and literals only, so a field block depends on nothing that was sent
//! before, and can be made once and kept with a cache object.

mod decoder;
pub mod encode;
pub mod huffman;
pub mod integer;
mod statics;
mod table;

pub use decoder::{Decoder, HpackError};

/// The size of the dynamic table that clients may use (RFC 9113 section 6.5.2), in bytes of RFC 7541 section 4.1.
pub const TABLE_SIZE: usize = 4096;

#[cfg(test)]
mod tests;
