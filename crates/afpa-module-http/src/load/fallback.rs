//! Requests that something else than a file answers if there is none.
//!
//! "No file" is what nginx's `try_files` takes for it: nothing has the name (also ENOTDIR and ENAMETOOLONG), or a directory
//! has it that has neither an index file nor a listing. A file that may not be read stays a refusal.

use std::sync::Arc;

use afpa_cache::Millis;
use afpa_framework::{Helpers, Overloaded};
use afpa_http::Status;

use super::find::{self, Found};
use super::refusal::Refusal;
use super::{Loaded, load_untold};
use crate::doc_root::DocRoot;

/// Loads the object for a normalised path, or finds out that it leads to no file.
pub(crate) async fn load_or_none(
    doc_root: &Arc<DocRoot>,
    path: &[u8],
    helpers: &Helpers,
    now: Millis,
) -> Loaded {
    let loaded = load_untold(doc_root, path, helpers, now).await;
    judged(loaded, doc_root, path, helpers).await
}

/// Finds out whether a normalised path leads to a file.
pub(crate) async fn look(doc_root: &Arc<DocRoot>, path: &[u8], helpers: &Helpers) -> Loaded {
    let loaded = found(doc_root, path.into(), helpers).await;
    judged(loaded, doc_root, path, helpers).await
}

/// The loaded answer, or [`Loaded::NoFile`] where there is no file.
async fn judged(loaded: Loaded, doc_root: &Arc<DocRoot>, path: &[u8], helpers: &Helpers) -> Loaded {
    let is_none = match &loaded {
        // The redirect to a directory would lead to a request that falls back.
        Loaded::Slash => is_no_file(&found(doc_root, [path, b"/"].concat(), helpers).await),
        loaded => is_no_file(loaded),
    };
    if !is_none {
        return loaded.told(path);
    }
    doc_root.note_absent(path);
    Loaded::NoFile
}

fn is_no_file(loaded: &Loaded) -> bool {
    matches!(loaded, Loaded::Failed(Status::NOT_FOUND) | Loaded::Refused(Refusal::NoListing))
}

async fn found(doc_root: &Arc<DocRoot>, path: Vec<u8>, helpers: &Helpers) -> Loaded {
    let doc_root = Arc::clone(doc_root);
    let look = move || match find::find(&doc_root, &path, &mut |_| {}) {
        Found::File(_) => Loaded::There,
        Found::Nothing(loaded, _) => loaded,
    };
    match helpers.run(look).await {
        Ok(loaded) => loaded,
        Err(Overloaded) => Loaded::Failed(Status::SERVICE_UNAVAILABLE),
    }
}
