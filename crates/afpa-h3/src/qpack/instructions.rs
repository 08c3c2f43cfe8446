//! The instructions of the client's encoder and decoder (RFC 9204 sections 4.3 and 4.4). There is no dynamic table, so
//! hardly any is right.

/// An instruction that is wrong for an empty table without room. The connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrongInstruction;

/// The client's encoder stream. The capacity may be set to 0, and nothing may be inserted.
#[derive(Clone, Copy, Debug, Default)]
pub struct EncoderStream;

impl EncoderStream {
    /// Reads instructions. An instruction of one byte is the only right one, so none is ever cut.
    ///
    /// # Errors
    /// QPACK_ENCODER_STREAM_ERROR.
    pub fn read(&mut self, bytes: &[u8]) -> Result<(), WrongInstruction> {
        const CAPACITY_0: u8 = 0x20;
        match bytes.iter().all(|byte| *byte == CAPACITY_0) {
            true => Ok(()),
            false => Err(WrongInstruction),
        }
    }
}

/// The client's decoder stream. Our sections need no acknowledgement, so a stream that was cancelled is all that it may
/// tell.
#[derive(Clone, Copy, Debug, Default)]
pub struct DecoderStream {
    /// Bytes of a stream's number that have come.
    within: usize,
}

impl DecoderStream {
    /// Reads instructions.
    ///
    /// # Errors
    /// QPACK_DECODER_STREAM_ERROR.
    pub fn read(&mut self, bytes: &[u8]) -> Result<(), WrongInstruction> {
        for byte in bytes {
            match self.within {
                // Stream Cancellation (section 4.4.2); the number has a prefix of 6 bits.
                0 if byte & 0xc0 == 0x40 => {
                    self.within = usize::from(byte & 0x3f == 0x3f);
                }
                0 => return Err(WrongInstruction),
                // A number of 62 bits has nine bytes behind its prefix.
                1..=9 => self.within = if byte & 0x80 == 0 { 0 } else { self.within + 1 },
                _ => return Err(WrongInstruction),
            }
        }
        Ok(())
    }
}
