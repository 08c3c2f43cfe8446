//! Reads a file as a whole, if it is one, and not longer than it may be.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;

use crate::units::show_size;

/// The bytes of a file.
///
/// # Errors
/// As `File::open`, and for a directory, a device, or a file of more than `most` bytes.
pub(crate) fn read_whole(path: &Path, most: usize) -> io::Result<Vec<u8>> {
    let not_one = || {
        let cause = format!("it is not a file of at most {}", show_size(most));
        io::Error::new(io::ErrorKind::InvalidInput, cause)
    };
    // A pipe would not be opened before something writes into it.
    if !fs::metadata(path)?.is_file() {
        return Err(not_one());
    }
    let mut content = Vec::new();
    File::open(path)?.take(most as u64 + 1).read_to_end(&mut content)?;
    if content.len() > most { Err(not_one()) } else { Ok(content) }
}
