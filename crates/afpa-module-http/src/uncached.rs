//! *Derive uncached response*: the request that goes to a helper thread, and its answer. How the object is
//! made is in `load`.

use std::future::Future;
use std::sync::Arc;

use afpa_cache::Millis;
use afpa_framework::{Helpers, Now, Outbox, Persistence};
use afpa_http::{FieldSlots, Status, request::Said, target};

use crate::asked::{Asked, KeptRequest};
use crate::doc_root::DocRoot;
use crate::load::{self, Loaded};
use crate::respond::Responder;

/// A request for a path below a document root. It holds the root, so that a reload in the meantime does not change its
/// answer.
pub struct Uncached {
    pub(crate) request: KeptRequest,
    pub(crate) root: Arc<DocRoot>,
    /// Normalised.
    pub(crate) path: Box<[u8]>,
}

/// The request, and the result of the helper thread.
pub struct LoadedRequest {
    pub(crate) request: KeptRequest,
    root: Arc<DocRoot>,
    loaded: Loaded,
}

impl Uncached {
    /// Loads the object.
    pub(crate) fn load(
        self,
        helpers: Helpers,
        now: Millis,
    ) -> impl Future<Output = LoadedRequest> + 'static {
        let Uncached { request, root, path } = self;
        async move {
            let loaded = load::load(Arc::clone(&root), path, helpers, now).await;
            LoadedRequest { request, root, loaded }
        }
    }
}

impl LoadedRequest {
    /// Writes the answer.
    pub(crate) fn finish(
        self,
        responder: &mut Responder,
        now: Now,
        must_close: bool,
        out: &mut Outbox,
    ) -> Persistence {
        let Self { request, root, loaded } = self;
        let mut slots = FieldSlots::default();
        let Some(parsed) = request.parse(&mut slots) else {
            let (said, status) = (Said::in_head(&request.head), Status::INTERNAL_SERVER_ERROR);
            responder.refuse(request.client, said, status, now, out);
            return Persistence::Close;
        };
        let asked = Asked {
            client: request.client,
            request: &parsed,
            scope: request.scope(),
            source: "uncached",
            arrived: request.arrived,
            now,
            must_close,
            tls: request.tls.as_ref(),
            hsts: request.hsts.as_ref(),
        };
        match loaded {
            Loaded::Object(object) => {
                root.note(&object, &parsed);
                responder.object(asked, &object, root.settings(), out)
            }
            Loaded::Slash => {
                let location = with_slash(&parsed);
                responder.redirect(asked, Status::MOVED_PERMANENTLY, &location, out)
            }
            Loaded::Listing(html) => responder.html(asked, &html, out),
            Loaded::Failed(status) => responder.page(asked, status, out),
            Loaded::Refused(refusal) => responder.page(asked, refusal.status(), out),
        }
    }
}

/// The target of a request for a directory, with the slash that was missing and the query as it came. The path is that
/// of the client, even if the router has rewritten it.
fn with_slash(request: &afpa_http::Request<'_, '_>) -> Vec<u8> {
    let mut room = Vec::new();
    let path = request.target.path().unwrap_or_default();
    let path = target::normalise(path, &mut room).unwrap_or_default();
    let mut location = Vec::with_capacity(path.len() + 1);
    target::encode(path, &mut location);
    location.push(b'/');
    if let Some(query) = request.target.query() {
        location.push(b'?');
        location.extend_from_slice(query);
    }
    location
}
