//! Pages that lie neither in the arena nor in a file of the tree.

use std::fs::File;
use std::io::{self, Write as _};
use std::sync::Arc;

use afpa_cache::root::FileBody;
use afpa_cache::{Cache, Stamp};

use super::fault::BuildError;
use crate::header::HttpHeader;

/// A page in a file without a name. It counts against the limit of such pages until the last response has let it go.
#[derive(Debug)]
pub(crate) struct PageInMemory {
    pub(crate) file: Arc<FileBody>,
    pub(crate) stamp: Stamp,
    pub(crate) len: u64,
    pub(super) for_one_response: bool,
}

impl PageInMemory {
    pub(super) fn of(cache: &Cache<HttpHeader>, content: &[u8]) -> Result<Self, BuildError> {
        let charge = cache.charge_page(content.len()).ok_or(BuildError::NoRoom)?;
        let for_one_response = charge.is_for_one_response();
        let file = nameless(content).map_err(BuildError::Io)?;
        let stamp = Stamp::from(&rustix::fs::fstat(&file).map_err(io::Error::from)?);
        let file = Arc::new(FileBody::of(file, &stamp)?.charged(charge));
        Ok(Self { file, stamp, len: content.len() as u64, for_one_response })
    }
}

fn nameless(content: &[u8]) -> io::Result<File> {
    let file = rustix::fs::memfd_create("afpa-page", rustix::fs::MemfdFlags::CLOEXEC)?;
    let mut file = File::from(file);
    file.write_all(content)?;
    Ok(file)
}
