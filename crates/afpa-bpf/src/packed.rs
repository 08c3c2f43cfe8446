//! The eBPF objects as the program carries them: packed by the build script.

use std::io::{self, Read as _};

use flate2::read::ZlibDecoder;

/// A packed object. It is needed for some milliseconds of a start, and is not kept unpacked.
#[derive(Clone, Copy, Debug)]
pub struct Packed(pub(crate) &'static [u8]);

impl Packed {
    /// The object as it was built.
    ///
    /// # Errors
    /// When the program's file is damaged.
    pub fn unpacked(self) -> io::Result<Vec<u8>> {
        let mut object = Vec::new();
        ZlibDecoder::new(self.0).read_to_end(&mut object)?;
        Ok(object)
    }
}
