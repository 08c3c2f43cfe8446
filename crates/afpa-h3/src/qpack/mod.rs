//! Field compression (RFC 9204) without a dynamic table: SETTINGS_QPACK_MAX_TABLE_CAPACITY is 0.
//!
//! So no field section depends on anything that came before. A stream is never blocked, and a section can be made once
//! and kept with a cache object. [`decode`] reads the sections of clients, [`Qpack`] writes ours.

mod decode;
mod encode;
mod instructions;
mod statics;

pub use decode::{QpackError, Rooms, decode};
pub use encode::{Qpack, section_of};
pub use instructions::{DecoderStream, EncoderStream};

#[cfg(test)]
mod tests;
