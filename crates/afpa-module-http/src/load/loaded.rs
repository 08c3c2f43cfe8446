//! The result of loading a path.

use std::sync::Arc;

use afpa_cache::Object;
use afpa_http::Status;

use super::page::PageInMemory;
use super::refusal::Refusal;
use crate::header::HttpHeader;
use crate::script::Script;

/// A listing as it is sent: a short one is copied behind its head.
#[derive(Debug)]
pub(crate) enum Listing {
    Short(Vec<u8>),
    Long(PageInMemory),
}

/// The result of loading a path.
#[derive(Debug)]
pub(crate) enum Loaded {
    /// A cache object.
    Object(Arc<Object<HttpHeader>>),
    /// A directory, whose name ends with a slash.
    Slash,
    /// A script, which servers run if there are any for it.
    Script(Script),
    /// The listing of a directory, as HTML.
    Listing(Listing),
    /// There is a file. Its object is not wanted.
    There,
    /// No file: the fallback decides.
    NoFile,
    /// No object that could be sent; the status says why.
    Failed(Status),
    /// No object that could be sent; the log says why, too.
    Refused(Refusal),
}

impl Loaded {
    /// With its reason in the log.
    pub(crate) fn told(self, path: &[u8]) -> Loaded {
        match self {
            Loaded::Refused(refusal) => {
                refusal.tell(path);
                Loaded::Failed(refusal.status())
            }
            loaded => loaded,
        }
    }
}
