//! *Derive uncached response*: the request that goes to a helper thread, and its answer. How the object is
//! made is in `load`.

use std::future::Future;
use std::net::IpAddr;
use std::sync::Arc;

use afpa_cache::Millis;
use afpa_framework::{Finished, Helpers, Now, Outbox, Persistence};
use afpa_http::{FieldSlots, Status, request::Said, target};
use afpa_router::{Fallback, RequestSetId, Scripts, SiteId};

use crate::asked::KeptRequest;
use crate::auth::PasswordCheck;
use crate::doc_root::DocRoot;
use crate::global::Global;
use crate::learnt::CheckedRequest;
use crate::load::{self, Loaded};
use crate::remote::{Remote, RemoteRequest};
use crate::respond::Responder;
use crate::route::Unfit;
use crate::script::{Script, is_script};

/// A request for a path below a document root. It holds the root, so that a reload in the meantime does not change its
/// answer.
pub struct Uncached {
    pub(crate) request: KeptRequest,
    pub(crate) root: Arc<DocRoot>,
    /// Normalised.
    pub(crate) path: Box<[u8]>,
    /// The answer if there is no file, or if it is a script; `None`: 404.
    pub(crate) fallback: Option<Box<KeptFallback>>,
    /// The answer if there is one, and the request is not for files.
    pub(crate) unfit: Option<Unfit>,
    /// The client whose share of the places for loading it takes (C4 of docs/rules).
    pub(crate) sharer: Option<IpAddr>,
}

/// A fallback, and how scripts are run, with the configuration that has them.
pub(crate) struct KeptFallback {
    pub(crate) global: Arc<Global>,
    /// `None`: 404.
    pub(crate) fallback: Option<Fallback>,
    pub(crate) scripts: Option<Arc<Scripts>>,
    pub(crate) scope: (SiteId, RequestSetId),
}

/// Work for a thread: to load the answer to a request, or to find out whether its client may have it.
pub enum Work {
    /// The answer.
    Load(Box<Uncached>),
    /// The client.
    Check(Box<PasswordCheck>),
    /// Nothing: the request has another target by now.
    Again(Box<CheckedRequest>),
}

/// The result of [`Work`].
pub enum Worked {
    /// The answer.
    Loaded(LoadedRequest),
    /// The client.
    Checked(CheckedRequest),
}

impl Work {
    /// Does it.
    pub(crate) async fn run(self, helpers: Helpers, now: Millis) -> Worked {
        match self {
            Work::Load(request) => Worked::Loaded(request.load(helpers, now).await),
            Work::Check(check) => Worked::Checked(check.run().await),
            Work::Again(request) => Worked::Checked(*request),
        }
    }

    /// Whether a server may be asked afterwards.
    pub(crate) fn may_need_server(&self) -> bool {
        match self {
            Work::Load(request) => request.may_need_server(),
            Work::Check(_) | Work::Again(_) => true,
        }
    }
}

/// The request, and the result of the helper thread.
pub struct LoadedRequest {
    pub(crate) request: KeptRequest,
    root: Arc<DocRoot>,
    fallback: Option<Box<KeptFallback>>,
    unfit: Option<Unfit>,
    loaded: Loaded,
}

impl Uncached {
    /// Loads the object.
    pub(crate) fn load(
        self: Box<Self>,
        helpers: Helpers,
        now: Millis,
    ) -> impl Future<Output = LoadedRequest> + 'static {
        let Uncached { request, root, path, fallback, unfit, .. } = *self;
        async move {
            let falls_back = fallback.as_ref().filter(|kept| kept.fallback.is_some());
            let loaded = match (falls_back, unfit) {
                (_, Some(_)) => match load::look(&root, &path, &helpers).await {
                    Loaded::NoFile => fallback
                        .as_ref()
                        .and_then(|kept| kept.script(&root, &path))
                        .map_or(Loaded::NoFile, Loaded::Script),
                    loaded => loaded,
                },
                (None, None) => load::load(Arc::clone(&root), path, helpers, now).await,
                (Some(kept), None) => match load::load_or_none(&root, &path, &helpers, now).await {
                    Loaded::NoFile => kept.load_file(&root, &path, helpers, now).await,
                    loaded => loaded,
                },
            };
            LoadedRequest { request, root, fallback, unfit, loaded }
        }
    }

    /// Whether a server answers if there is no file, or gives the page of that error.
    pub(crate) fn may_need_server(&self) -> bool {
        let falls_back = self.fallback.as_ref().is_some_and(|kept| {
            kept.scripts.is_some() || matches!(kept.fallback, Some(Fallback::Distributed { .. }))
        });
        falls_back || self.request.errors().is_some_and(|errors| errors.pages.ask_servers())
    }
}

impl KeptFallback {
    /// The script that answers where `path` is no file, if that is the fallback.
    fn script(&self, root: &Arc<DocRoot>, path: &[u8]) -> Option<Script> {
        let Some(Fallback::File(file)) = &self.fallback else { return None };
        let is_run = self.scripts.is_some() && is_script(file) && !root.hides(path);
        is_run.then(|| Script::at(file, file.len()))
    }

    /// Loads the file that answers where `path` is none, if that is the fallback.
    async fn load_file(
        &self,
        root: &Arc<DocRoot>,
        path: &[u8],
        helpers: Helpers,
        now: Millis,
    ) -> Loaded {
        if let Some(script) = self.script(root, path) {
            return Loaded::Script(script);
        }
        match &self.fallback {
            Some(Fallback::File(_)) if root.hides(path) => Loaded::Failed(Status::NOT_FOUND),
            Some(Fallback::File(file)) => {
                match load::load(Arc::clone(root), (&**file).into(), helpers, now).await {
                    // A directory has taken its place.
                    Loaded::Slash => Loaded::Failed(Status::NOT_FOUND),
                    loaded => loaded,
                }
            }
            Some(Fallback::Distributed { .. } | Fallback::Status(_)) | None => Loaded::NoFile,
        }
    }
}

impl LoadedRequest {
    /// The servers that answer, and the script that they run if there is one.
    pub(crate) fn take_servers(&mut self) -> Option<(Box<KeptFallback>, Option<Script>)> {
        let asks = |kept: &mut Box<KeptFallback>| {
            matches!(kept.fallback, Some(Fallback::Distributed { .. }))
        };
        match &mut self.loaded {
            Loaded::NoFile => Some((self.fallback.take_if(asks)?, None)),
            Loaded::Script(script) => {
                let script = std::mem::take(script);
                let kept = self.fallback.take_if(|kept| kept.scripts.is_some())?;
                Some((kept, Some(script)))
            }
            _ => None,
        }
    }

    /// Writes the answer.
    pub(crate) fn finish(
        mut self,
        responder: &mut Responder,
        now: Now,
        must_close: bool,
        out: &mut Outbox,
    ) -> Finished<Remote> {
        let loaded = std::mem::replace(&mut self.loaded, Loaded::NoFile);
        let persistence = self.answer(loaded, responder, (now, must_close), out);
        match responder.wanted.take() {
            None => Finished::Answered(persistence),
            Some(wanted) => Finished::Remote(RemoteRequest::for_page(self.request, *wanted)),
        }
    }

    fn answer(
        &self,
        loaded: Loaded,
        responder: &mut Responder,
        (now, must_close): (Now, bool),
        out: &mut Outbox,
    ) -> Persistence {
        let Self { request, root, fallback, unfit, .. } = self;
        let mut slots = FieldSlots::default();
        let Some(parsed) = request.parse(&mut slots) else {
            let (said, status) = (Said::in_head(&request.head), Status::INTERNAL_SERVER_ERROR);
            responder.refuse(request.client, said, status, now, out);
            return Persistence::Close;
        };
        let asked = request.asked(&parsed, "uncached", (now, must_close));
        match loaded {
            Loaded::Object(_) | Loaded::Slash | Loaded::Listing(_) | Loaded::There
                if let Some(unfit) = *unfit =>
            {
                responder.unfit(asked, unfit, out)
            }
            Loaded::Object(object) => {
                root.note(&object, &parsed);
                responder.object(asked, &object, root.settings(), out)
            }
            Loaded::Slash => {
                let location = with_slash(&parsed);
                responder.redirect(asked, Status::MOVED_PERMANENTLY, &location, out)
            }
            Loaded::Listing(listing) => responder.listing(asked, listing, out),
            // Nothing runs it here, and its content is for nobody.
            Loaded::Script(_) => responder.page(asked, Status::FORBIDDEN, out),
            Loaded::Failed(status) => responder.page(asked, status, out),
            Loaded::Refused(refusal) => responder.page(asked, refusal.status(), out),
            Loaded::NoFile => {
                let fallback = fallback.as_ref().and_then(|kept| kept.fallback.as_ref());
                let precedes = |unfit: Unfit| match fallback {
                    Some(Fallback::File(_)) => true,
                    Some(Fallback::Status(status)) => unfit.precedes(*status),
                    _ => unfit.precedes(Status::NOT_FOUND),
                };
                if let Some(unfit) = unfit.filter(|unfit| precedes(*unfit)) {
                    return responder.unfit(asked, unfit, out);
                }
                let status = match fallback {
                    Some(Fallback::Status(status)) => *status,
                    _ => Status::NOT_FOUND,
                };
                responder.status(asked, status, out)
            }
            Loaded::There => responder.page(asked, Status::METHOD_NOT_ALLOWED, out),
        }
    }
}

/// The target of a request for a directory, with the slash that was missing and the query as it came. The path is that
/// of the URL, even if a directory has taken the place of its prefix.
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
