//! *Derive uncached response*: from a path to a cache object. Thread context.
//!
//! ```text
//! load ── is it absent again? ── 404
//!  └───── begin ──┬─ another request loads it: wait
//!                 └─ lead: find (file, stored codings) ── suspect unchanged: confirm
//!                                                     └── build (read, heads) ── publish
//! ```
//!
//! When an object is asked for again, the [`Compressor`] makes its codings; no request waits for them.
//!
//! Every path that the outcome depends on is registered with the ticket before it is opened, so that a change
//! in between invalidates the load and is not missed.

mod absent;
mod build;
mod compare;
mod compress;
mod compressor;
mod fallback;
mod fault;
mod filter;
mod find;
mod homes;
mod listing;
mod loaded;
mod page;
mod refusal;
mod sources;

use std::sync::Arc;
use std::time::{Duration, Instant};

use afpa_cache::{Fill, Key, Millis, Object, Ticket};
use afpa_framework::{Helpers, Overloaded};
use afpa_http::Status;

use crate::doc_root::DocRoot;
use crate::header::HttpHeader;
use fault::BuildError;
use find::Found;
use refusal::Refusal;

pub(crate) use absent::Absent;
pub use compare::Comparer;
pub(crate) use compressor::Compresses;
pub use compressor::{Compressor, CompressorStats};
pub(crate) use fallback::{load_or_none, look};
pub(crate) use filter::Pipeline;
pub(crate) use homes::{Homes, RootedPath, split_home};
pub(crate) use loaded::{Listing, Loaded};
pub(crate) use page::PageInMemory;

/// A load that a change overtook is begun again, for this long and so many times. A request that waited for
/// such a load gets nothing from it, and has to load in its turn.
const PATIENCE: Duration = Duration::from_secs(2);
const ATTEMPTS: usize = 256;

/// Loads the object for a normalised path, or finds out why there is none.
pub(crate) async fn load(
    doc_root: Arc<DocRoot>,
    path: Box<[u8]>,
    helpers: Helpers,
    now: Millis,
) -> Loaded {
    let loaded = load_untold(&doc_root, &path, &helpers, now).await.told(&path);
    if matches!(loaded, Loaded::Failed(Status::NOT_FOUND)) {
        doc_root.note_absent(&path);
    }
    loaded
}

/// As [`load`], without a word in the log. Many callers with the same path cause one load.
async fn load_untold(
    doc_root: &Arc<DocRoot>,
    path: &[u8],
    helpers: &Helpers,
    now: Millis,
) -> Loaded {
    let key = Key::new(doc_root.key(), path);
    let begun = Instant::now();
    for _ in 0..ATTEMPTS {
        let root = Arc::clone(doc_root);
        let outcome = match doc_root.cache().begin(key.clone(), now) {
            Fill::Hit(object) => return Loaded::Object(object),
            Fill::Wait(waiter) => match waiter.await {
                Some(object) => return Loaded::Object(object),
                // That load gave no object to share, so this request looks itself.
                None => {
                    let path: Box<[u8]> = path.into();
                    helpers.run(move || without_object(&root, &path)).await
                }
            },
            Fill::Lead(ticket) => helpers.run(move || fill(&root, ticket)).await,
        };
        match outcome {
            Ok(Filled::Loaded(loaded)) => return loaded,
            // It was read after this request arrived, so it is a correct answer to this request, but
            // perhaps not to later ones.
            Ok(Filled::Overtaken(Some(object))) => return Loaded::Object(object),
            Ok(Filled::Overtaken(None)) if begun.elapsed() < PATIENCE => {}
            Ok(Filled::Overtaken(None)) | Err(Overloaded) => break,
        }
    }
    // The file is being written faster than it can be read.
    Loaded::Failed(Status::SERVICE_UNAVAILABLE)
}

/// The result of one attempt.
pub(crate) enum Filled {
    /// An answer.
    Loaded(Loaded),
    /// A change overtook the load: begin again. The object, if the file was read as a whole.
    Overtaken(Option<Arc<Object<HttpHeader>>>),
}

/// Loads the object that `ticket` is for.
pub(crate) fn fill(doc_root: &DocRoot, mut ticket: Ticket<HttpHeader>) -> Filled {
    let path = Arc::clone(&ticket.key().path);
    let found = find::find(doc_root, &path, &mut |place| ticket.depends_on(place));
    let mut sources = match found {
        Found::File(sources) => sources,
        Found::Nothing(loaded, _) => return Filled::Loaded(loaded),
    };
    let unchanged = ticket.suspect().is_some_and(|suspect| sources.are_those_of(suspect.header()));
    if unchanged {
        return match ticket.confirm() {
            Ok(object) => Filled::Loaded(Loaded::Object(object)),
            Err(_changed) => Filled::Overtaken(None),
        };
    }
    let content = match build::build(doc_root, &mut ticket, &mut sources) {
        Ok(content) => content,
        Err(BuildError::Changed) => return Filled::Overtaken(None),
        Err(BuildError::Refused(status)) => return Filled::Loaded(Loaded::Failed(status)),
        Err(BuildError::NoRoom) => return Filled::Loaded(Loaded::Refused(Refusal::NoRoom)),
        Err(BuildError::Io(error)) => {
            return Filled::Loaded(Loaded::Refused(Refusal::Unread(error)));
        }
    };
    ticket.weigh(content.bytes);
    let coverage = sources.coverage;
    let stamp = sources.file.stamp;
    match ticket.publish(content.header, content.payloads, stamp, coverage) {
        Ok(object) => Filled::Loaded(Loaded::Object(object)),
        Err(overtaken) => Filled::Overtaken(Some(overtaken.0)),
    }
}

/// The answer for a path without object, unless there is a file by now.
fn without_object(doc_root: &DocRoot, path: &[u8]) -> Filled {
    match find::find(doc_root, path, &mut |_| {}) {
        Found::File(_) => Filled::Overtaken(None),
        Found::Nothing(loaded, _) => Filled::Loaded(loaded),
    }
}
