//! Pages of the operator's own for errors, which the router's request sets and sites have.

mod ask;

use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use afpa_framework::{Client, Network};
use afpa_http::Status;
use afpa_proxy::exchange;
use afpa_proxy::pool::Share;
use afpa_proxy::select::Group;
use arc_swap::ArcSwap;

use crate::demand::Reserved;
pub(crate) use ask::{Served, Wanted, ask, job};

/// The pages of one request set; of those that have a status, the first one counts.
#[derive(Debug, Default)]
pub struct ErrorPages {
    /// In order.
    pub rules: Vec<ErrorRule>,
    /// Ranges of statuses for which servers' answers are replaced, too; `None`: for no status.
    pub replaces: Option<Arc<[(u16, u16)]>>,
    /// Routers in front whose X-Forwarded-For is trusted to name the client.
    pub forwarded_from: Arc<[Network]>,
    /// Fields by which servers that decide about requests speak: no client's own reach a page's server.
    pub reserved: Reserved,
    /// Further fields that they get from a server that has consented, or not at all.
    pub of_consents: Reserved,
}

/// The page for some statuses.
#[derive(Clone, Debug)]
pub struct ErrorRule {
    /// The first and the last status.
    pub statuses: (u16, u16),
    /// Where it comes from.
    pub page: PageSource,
    /// The status of the answer; `None`: that of the error.
    pub answer: Option<Status>,
}

/// Where an error page comes from.
#[derive(Clone, Debug)]
pub enum PageSource {
    /// AFPA makes it.
    BuiltIn,
    /// It was read from a file.
    File(Arc<PageFile>),
    /// A server gives it.
    Server(Arc<PageServer>),
}

/// A page that is held in memory.
#[derive(Debug)]
pub struct PageFile {
    /// The file.
    pub path: PathBuf,
    /// The value of Content-Type.
    pub content_type: String,
    content: ArcSwap<Vec<u8>>,
    /// The file could not be read when it was last tried.
    is_lost: AtomicBool,
}

/// A page that is asked of a server.
#[derive(Debug)]
pub struct PageServer {
    /// The servers.
    pub group: Arc<Group>,
    /// Time-outs, limits, fields.
    pub settings: Arc<exchange::Settings>,
    /// The path, and perhaps a query; `{status}` stands for the code.
    pub path: String,
}

/// The content of a page. Responses hold it without a copy.
#[derive(Clone, Debug, Default)]
pub(crate) struct Content {
    bytes: Arc<Vec<u8>>,
    /// It was made for one response, and counts for as long as that holds it.
    _share: Option<Rc<Share>>,
}

impl Content {
    fn counted(bytes: Vec<u8>, share: Share) -> Self {
        Self { bytes: Arc::new(bytes), _share: Some(Rc::new(share)) }
    }
}

impl AsRef<[u8]> for Content {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Bytes of the longest page that a server gives.
pub(crate) const LONGEST_PAGE: usize = 64 << 10;

impl PageFile {
    /// A page with this content.
    pub fn new(path: PathBuf, content_type: String, content: Vec<u8>) -> Self {
        let (content, is_lost) = (ArcSwap::from_pointee(content), AtomicBool::new(false));
        Self { path, content_type, content, is_lost }
    }

    /// Its present content.
    pub(crate) fn content(&self) -> Content {
        Content { bytes: self.content.load_full(), _share: None }
    }

    /// Reads the file again. If that fails, the content stays.
    ///
    /// # Errors
    /// When the file cannot be read: once, until it can be read again.
    pub fn reread(&self, read: impl FnOnce(&Path) -> io::Result<Vec<u8>>) -> io::Result<()> {
        let content = read(&self.path);
        let was_lost = self.is_lost.swap(content.is_err(), Ordering::Relaxed);
        match content {
            Ok(content) if **self.content.load() != content => self.content.store(content.into()),
            Ok(_) => {}
            Err(_) if was_lost => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

impl ErrorPages {
    /// Whether servers give some of them.
    pub(crate) fn ask_servers(&self) -> bool {
        self.rules.iter().any(|rule| matches!(rule.page, PageSource::Server(_)))
    }

    /// The page for a status.
    pub(crate) fn find(&self, status: u16) -> Option<&ErrorRule> {
        let fits = |rule: &&ErrorRule| rule.statuses.0 <= status && status <= rule.statuses.1;
        self.rules.iter().find(fits)
    }
}

/// The error pages that one request meets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Errors<'a> {
    pub(crate) pages: &'a Arc<ErrorPages>,
    /// The client of the connection.
    pub(crate) peer: Client,
    /// A server may still be asked.
    pub(crate) may_ask: bool,
}

/// [`Errors`] of a request that waits.
#[derive(Clone, Debug)]
pub(crate) struct KeptErrors {
    pages: Arc<ErrorPages>,
    peer: Client,
}

impl Errors<'_> {
    pub(crate) fn keep(self) -> KeptErrors {
        KeptErrors { pages: Arc::clone(self.pages), peer: self.peer }
    }
}

impl KeptErrors {
    pub(crate) fn as_errors(&self) -> Errors<'_> {
        Errors { pages: &self.pages, peer: self.peer, may_ask: true }
    }
}

/// An error that is to be answered.
#[derive(Debug)]
pub(crate) struct Problem {
    pub(crate) status: Status,
    /// A sentence of help.
    pub(crate) sentence: &'static str,
    /// Field lines that belong to it, whatever its page is.
    pub(crate) lines: Vec<u8>,
    /// It is a limit that refuses the request: no server is to be asked for its page.
    pub(crate) by_limit: bool,
}

impl Problem {
    pub(crate) fn new(status: Status) -> Self {
        let sentence = afpa_http::page::help(status);
        Self { status, sentence, lines: Vec::new(), by_limit: false }
    }

    /// This problem with one field more, whose value AFPA writes.
    #[must_use]
    pub(crate) fn with(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        for part in [name.as_bytes(), b": ", value.as_ref(), b"\r\n"] {
            self.lines.extend_from_slice(part);
        }
        self
    }

    /// The problem of a request that no server has answered.
    pub(crate) fn of_failure(failure: exchange::Failure) -> Self {
        let problem = Self { sentence: failure.sentence(), ..Self::new(failure.status()) };
        let problem = problem.with("Cache-Control", "no-store");
        match failure.retry_after_s() {
            Some(seconds) => problem.with("Retry-After", seconds.to_string()),
            None => problem,
        }
    }

    /// The problem that a server has answered with, whose answer is replaced.
    pub(crate) fn of_answer(status: u16, lines: &[u8]) -> Option<Self> {
        let status = Status::new(status)?;
        Some(Self { lines: lines.to_vec(), ..Self::new(status) })
    }
}
