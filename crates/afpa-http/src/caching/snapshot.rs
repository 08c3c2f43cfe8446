//! A snapshot of stored responses, with which one process ends and the next one begins.
//!
//! ```text
//! begin    "AFPAsnap", version u32, the clocks 3 x u64, check u64
//! record*  length u32, that many bytes (see [`Record`]), check u64
//! end      0 u32, number of records u64, check u64 of all checks before
//! ```
//!
//! Numbers are little-endian. A check is SipHash-1-3 with a key that everybody knows: it finds damage by a disk or a
//! program, and is no signature. Nothing follows the end, so that a file that was cut short is found.
//!
//! [`Writer`] makes the bytes, [`Decoder`] is given them piece by piece; neither reads or writes a file.

mod decoder;
mod fields;
mod record;

#[cfg(test)]
mod tests;

use std::hash::Hasher as _;

use siphasher::sip::SipHasher13;

pub use decoder::{Decoder, Piece};
pub use record::Record;

/// The version of the format. Snapshots of other versions are not read.
pub const VERSION: u32 = 3;

/// The first bytes of every snapshot of any version.
pub const MAGIC: [u8; 8] = *b"AFPAsnap";

/// Bytes before the first record.
pub const BEGIN_LEN: usize = MAGIC.len() + 4 + 3 * 8 + CHECK_LEN;

/// Bytes behind the last record.
pub const END_LEN: usize = 4 + 8 + CHECK_LEN;

const CHECK_LEN: usize = 8;

/// Why a snapshot is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    /// It does not begin as one.
    #[error("it is no snapshot")]
    Foreign,
    /// It was written in another format.
    #[error("its format is version {0}, and this program reads version {VERSION}")]
    Version(u32),
    /// A check is wrong.
    #[error("its bytes are not those that were written")]
    Changed,
    /// There is no end.
    #[error("it was cut short")]
    Cut,
    /// It goes on behind its end.
    #[error("something follows its end")]
    Longer,
    /// The check of a record is right, and its content is not.
    #[error("it has a record that no version {VERSION} writes")]
    Malformed,
    /// It comes from the future, or its age is not known for sure.
    #[error("the clock was set back since it was written")]
    SetBack,
}

/// The time at which a snapshot is written or read, by two clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clocks {
    /// Microseconds since the Unix epoch.
    pub unix_us: u64,
    /// A number of the host's present run; 0: it is not known.
    pub boot: u64,
    /// Microseconds since that run began.
    pub boot_us: u64,
}

/// How far both clocks may be apart: that on the wall is adjusted all the time.
const APART_US: u64 = 1_000_000;

impl Clocks {
    /// Seconds from here to `now`, rounded up, so that nothing gets younger.
    ///
    /// # Errors
    /// [`Broken::SetBack`], as far as it can be known: the clock on the wall is before the one here, or, where the
    /// host has not been started anew, has gone on by less than the other one.
    pub fn seconds_until(&self, now: &Self) -> Result<u64, Broken> {
        let wall = now.unix_us.checked_sub(self.unix_us).ok_or(Broken::SetBack)?;
        let same_run = self.boot != 0 && self.boot == now.boot;
        let steady = match same_run {
            true => now.boot_us.checked_sub(self.boot_us).ok_or(Broken::SetBack)?,
            false => 0,
        };
        if steady > wall.saturating_add(APART_US) {
            return Err(Broken::SetBack);
        }
        Ok(wall.max(steady).div_ceil(1_000_000))
    }
}

/// Makes a snapshot.
#[derive(Debug)]
pub struct Writer {
    records: u64,
    checks: Check,
}

impl Writer {
    /// Begins one, and writes its begin.
    pub fn begin(clocks: &Clocks, out: &mut Vec<u8>) -> Self {
        let from = out.len();
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&VERSION.to_le_bytes());
        for number in [clocks.unix_us, clocks.boot, clocks.boot_us] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        let mut writer = Self { records: 0, checks: Check::default() };
        writer.put_check(from, out);
        writer
    }

    /// Writes a record, unless it makes more than `most` bytes, or could not be read again. Returns whether it did.
    pub fn put(&mut self, record: &Record<'_>, most: usize, out: &mut Vec<u8>) -> bool {
        if !record.is_sound() {
            return false;
        }
        let from = out.len();
        out.extend_from_slice(&[0; 4]);
        record.put(out);
        let len = out.len().saturating_sub(from + 4);
        let prefix = out.get_mut(from..).and_then(|frame| frame.first_chunk_mut());
        match (u32::try_from(len), prefix) {
            (Ok(len), Some(prefix)) if out_of(len) <= most => *prefix = len.to_le_bytes(),
            _ => {
                out.truncate(from);
                return false;
            }
        }
        self.put_check(from, out);
        self.records += 1;
        true
    }

    /// Ends it. Returns how many records it has.
    pub fn end(mut self, out: &mut Vec<u8>) -> u64 {
        let from = out.len();
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&self.records.to_le_bytes());
        self.checks.add(out.get(from..).unwrap_or_default());
        out.extend_from_slice(&self.checks.value());
        self.records
    }

    fn put_check(&mut self, from: usize, out: &mut Vec<u8>) {
        let check = Check::of(out.get(from..).unwrap_or_default());
        self.checks.add(&check);
        out.extend_from_slice(&check);
    }
}

/// Bytes that a record of this length makes.
fn out_of(len: u32) -> usize {
    (len as usize).saturating_add(4 + CHECK_LEN)
}

/// A check of bytes.
#[derive(Clone, Copy, Debug)]
struct Check(SipHasher13);

impl Default for Check {
    fn default() -> Self {
        Self(SipHasher13::new_with_keys(u64::from_le_bytes(MAGIC), u64::from(VERSION)))
    }
}

impl Check {
    fn of(bytes: &[u8]) -> [u8; CHECK_LEN] {
        let mut check = Self::default();
        check.add(bytes);
        check.value()
    }

    fn add(&mut self, bytes: &[u8]) {
        self.0.write(bytes);
    }

    fn value(&self) -> [u8; CHECK_LEN] {
        self.0.finish().to_le_bytes()
    }
}
