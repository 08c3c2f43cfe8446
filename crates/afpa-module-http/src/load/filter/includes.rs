//! Server-side includes: the filter around [`afpa_includes`].

use std::io;
use std::os::unix::fs::FileExt as _;
use std::time::{SystemTime, UNIX_EPOCH};

use afpa_cache::root::{FileBody, OpenFile, VersionError, read_exact_version};
use afpa_cache::{Coverage, Keep, Stamp};
use afpa_http::Status;
use afpa_includes::{Document, ExpandError, Facts, Files, Limits, Page, Unreadable, expand};

use super::pipeline::{Draft, Filter, Origin};
use crate::doc_root::DocRoot;
use crate::load::fault::BuildError;
use crate::load::find::{self, Found};
use crate::load::sources::Sources;

/// Expands the elements of a page.
pub(super) struct Includes;

impl Filter for Includes {
    fn filter(&self, draft: &mut Draft, origin: &mut Origin<'_>) -> Result<(), BuildError> {
        if draft.content.is_some() {
            return Ok(());
        }
        let settings = origin.doc_root.settings();
        let limits = Limits { size: settings.includes_size, ..Limits::default() };
        let stamp = &origin.sources.file.stamp;
        let too_long = usize::try_from(stamp.size).is_ok_and(|size| size > limits.size);
        let path = [settings.mount.as_bytes(), &origin.sources.path].concat();
        if too_long {
            return Err(refused(&path, ExpandError::TooMuch));
        }
        let content = read(&origin.sources.file)?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let page = Page { path: &path, content: &content, modified: stamp.modified(), now };
        let (doc_root, depend) = (origin.doc_root, origin.depend);
        let (tells, coverage) = (origin.tells, origin.sources.coverage);
        let mut below = Below { doc_root, depend, tells, coverage };
        let expanded = match expand(&page, &mut below, &limits) {
            Ok(expanded) => expanded,
            Err(ExpandError::Changed) => return Err(BuildError::Changed),
            Err(error) => return Err(refused(&path, error)),
        };
        for fault in expanded.faults.iter().filter(|_| origin.tells) {
            let (document, line) = (fault.path.escape_ascii(), fault.line);
            let (page, cause) = (path.escape_ascii(), &fault.cause);
            tracing::warn!(%document, line, %page, cause, "an element of a page failed");
        }
        origin.sources.coverage = below.coverage;
        // The stored codings are codings of the page as it was written.
        origin.sources.stored.clear();
        draft.content = Some(expanded.content);
        // A page of the moment is kept only if somebody says for how long.
        if expanded.shows_time && draft.hint.expiry.is_none() {
            draft.hint.keep = Keep::Never;
        }
        Ok(())
    }
}

fn refused(path: &[u8], error: ExpandError) -> BuildError {
    let path = path.escape_ascii();
    tracing::warn!(%path, %error, "a page cannot be expanded");
    BuildError::Refused(Status::INTERNAL_SERVER_ERROR)
}

/// The content of a page. If its file grows all the time: the bytes that it had at the beginning.
fn read(file: &OpenFile) -> Result<Vec<u8>, BuildError> {
    let size = usize::try_from(file.stamp.size).map_err(|_| BuildError::Changed)?;
    let mut content = vec![0; size];
    match read_exact_version(&file.file, &file.stamp, &mut content) {
        Err(VersionError::Grown) => {
            let body = FileBody::growing(file.file.try_clone()?, file.stamp.size)?;
            let mut seen = Stamp::from(&rustix::fs::fstat(&*body).map_err(io::Error::from)?);
            body.read_exact_at(&mut content, 0)?;
            if body.holds(&mut seen) { Ok(content) } else { Err(BuildError::Changed) }
        }
        outcome => Ok(outcome.map(|()| content)?),
    }
}

/// The files below the document root that a page may include. Each path is announced before it is opened.
struct Below<'a> {
    doc_root: &'a DocRoot,
    depend: &'a dyn Fn(&[u8]),
    /// Whether faults are news, and go to the log.
    tells: bool,
    /// The coverage of all files that were looked at.
    coverage: Coverage,
}

impl Below<'_> {
    fn find(&mut self, path: &[u8]) -> Result<Sources, Unreadable> {
        // A path above the directory's own URL is not in the directory.
        let mount = self.doc_root.settings().mount.as_bytes();
        let path = path.strip_prefix(mount).filter(|path| path.starts_with(b"/"));
        let path = path.ok_or(Unreadable::Missing)?;
        let found = find::find(self.doc_root, path, &mut |place| (self.depend)(place));
        let (sources, coverage) = match found {
            Found::File(sources) => {
                let coverage = sources.coverage;
                (Ok(sources), coverage)
            }
            Found::Nothing(nothing, coverage) => {
                // The page says no more than that it is missing.
                if self.tells {
                    drop(nothing.told(path));
                }
                (Err(Unreadable::Missing), coverage)
            }
        };
        if coverage == Coverage::Unwatched {
            self.coverage = Coverage::Unwatched;
        }
        sources
    }
}

impl Files for Below<'_> {
    fn read(&mut self, path: &[u8], most: usize) -> Result<Document, Unreadable> {
        let sources = self.find(path)?;
        if usize::try_from(sources.file.stamp.size).map_or(true, |size| size > most) {
            return Err(Unreadable::TooLong);
        }
        let content = match read(&sources.file) {
            Ok(content) => content,
            Err(BuildError::Changed) => return Err(Unreadable::Changed),
            Err(_) => return Err(Unreadable::Missing),
        };
        let settings = self.doc_root.settings();
        let has_elements = settings.has_includes(&sources.path);
        let path = [settings.mount.as_bytes(), &sources.path].concat();
        Ok(Document { content, path, has_elements })
    }

    fn look(&mut self, path: &[u8]) -> Result<Facts, Unreadable> {
        let stamp = self.find(path)?.file.stamp;
        Ok(Facts { size: stamp.size, modified: stamp.modified() })
    }
}
