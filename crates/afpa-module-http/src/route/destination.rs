//! The destinations of requests.

use std::rc::Rc;
use std::sync::Arc;

use afpa_http::edits::{Cors, Edits};
use afpa_http::{Method, Request, Status};
use afpa_police::Refusal;
use afpa_router::{Fallback, Fixed, RequestSetId, Scripts, SiteId, Verdict};
use afpa_users::Credentials;

use crate::demand::{Granted, PasswordDemand, ServerDemand};
use crate::doc_root::DocRoot;
use crate::global::Global;
use crate::rates::{Limited, PlaceRates};
use crate::remote::{Distributed, asks_tunnel};
use crate::script::{Run, Script, is_script};

/// The destination of a request, and the counters that count it.
pub(crate) struct Routed<'m> {
    /// The site whose trusted routers name the client.
    pub(crate) site: Option<SiteId>,
    /// The site, and perhaps the request set, whose counters count the request.
    pub(crate) scope: Option<(SiteId, Option<RequestSetId>)>,
    pub(crate) route: Route<'m>,
    /// The changes of the answer's fields, and of the request for servers.
    pub(crate) edits: Option<Edits<'m>>,
    /// The client was checked.
    pub(crate) granted: Option<Rc<Granted>>,
    /// The rates of the places to which other readings of the path lead.
    pub(crate) read_as: Vec<PlaceRates>,
}

/// Where a request goes. Paths are normalised, those for servers spelled; they lie in the input, or in memory of the module.
pub(crate) enum Route<'m> {
    /// To a file. The cache may have it; if not, a helper thread loads it.
    File(FileRoute<'m>),
    /// To a server group.
    Distributed(Distributed<'m>),
    /// A redirect: the verdict, and the path that was asked for.
    Redirect { status: Status, verdict: Verdict<'m, 'm>, path: &'m [u8] },
    /// To where another target leads.
    Rewritten(Target),
    /// An answer that the configuration wrote.
    Fixed(&'m Fixed),
    /// To no file: the request is not for files.
    Unfit(Unfit),
    /// The client has to show credentials.
    Unauthorized(Arc<PasswordDemand>),
    /// Its credentials are to be checked first.
    Check(Arc<PasswordDemand>, Credentials),
    /// Its credentials cannot be checked now.
    Busy,
    /// A server has to consent first.
    Ask(Arc<ServerDemand>),
    /// A preflight: the answer says who may ask from elsewhere.
    Preflight(&'m Cors),
    /// A status, with a page if it is an error.
    Status(Status),
    /// An error page.
    Error(Status),
    /// An error page that a server gives: the responder has the request for it.
    ErrorPage,
    /// CONNECT: the bytes behind it may be meant for the tunnel that AFPA does not offer, so the connection ends.
    Tunnel,
    /// Nowhere: its client is refused.
    Refused(Refusal),
    /// Nowhere: there are too many for this place.
    Limited(Limited),
}

/// Path and query that take the place of those of the request.
pub(crate) struct Target {
    pub(crate) text: Vec<u8>,
    /// The request set that answers; `None`: the router says it.
    pub(crate) within: Option<RequestSetId>,
}

/// A path below a document root. Without `unfit` it is for a GET or HEAD.
#[derive(Clone, Copy)]
pub(crate) struct FileRoute<'m> {
    pub(crate) root: &'m Arc<DocRoot>,
    pub(crate) path: &'m [u8],
    /// The answer if there is no file; `None`: 404.
    pub(crate) fallback: Option<&'m Fallback>,
    /// How scripts are run; `None`: not at all.
    pub(crate) scripts: Option<&'m Arc<Scripts>>,
    /// The answer if there is one, and the request is not for files.
    pub(crate) unfit: Option<Unfit>,
}

/// The answer to a request that is not for files.
#[derive(Clone, Copy)]
pub(crate) enum Unfit {
    /// It has more content than AFPA reads and throws away, so the connection ends.
    ContentTooLarge,
    /// OPTIONS, which AFPA answers.
    Options,
    /// The method is one that files do not have.
    Status(Status),
}

impl Unfit {
    pub(super) fn of(global: &Global, request: &Request<'_, '_>) -> Option<Self> {
        if global.leaves_content(request) {
            return Some(Unfit::ContentTooLarge);
        }
        if asks_tunnel(request) {
            // A success would be a tunnel to nowhere.
            return Some(Unfit::Status(Status::NOT_IMPLEMENTED));
        }
        match request.method {
            Method::Get | Method::Head => None,
            Method::Options => Some(Unfit::Options),
            method => Some(Unfit::Status(not_for_files(method))),
        }
    }

    /// Whether it is the answer also where there is no file, and `status` is the fallback. A success that answers a method
    /// which nothing here has would mean something: a tunnel, for example.
    pub(crate) fn precedes(self, status: Status) -> bool {
        match self {
            Unfit::ContentTooLarge | Unfit::Options => true,
            Unfit::Status(own) => own == Status::NOT_IMPLEMENTED && status.code() < 400,
        }
    }
}

impl<'m> FileRoute<'m> {
    /// The route of a request of this site whose path is no file.
    pub(crate) fn fall_back(
        self,
        site: SiteId,
        request: &'m Request<'_, 'm>,
        (spelled, room): (&'m mut Vec<u8>, &'m mut Script),
    ) -> Route<'m> {
        match self.fallback {
            None => Route::Error(Status::NOT_FOUND),
            Some(Fallback::File(_)) if self.root.hides(self.path) => {
                Route::Error(Status::NOT_FOUND)
            }
            Some(Fallback::File(file))
                if let Some(scripts) = self.scripts.filter(|_| is_script(file)) =>
            {
                *room = Script::at(file, file.len());
                run(scripts, room, site, request, spelled)
            }
            Some(Fallback::File(file)) => {
                Route::File(FileRoute { path: file, fallback: None, ..self })
            }
            Some(Fallback::Status(status)) => match self.unfit {
                Some(unfit) if unfit.precedes(*status) => Route::Unfit(unfit),
                _ => Route::Status(*status),
            },
            Some(Fallback::Distributed { group, affinity }) => {
                let to = (site, *group, *affinity);
                Route::Distributed(Distributed::whole(to, request, spelled))
            }
        }
    }
}

/// The route of a request of this site whose path leads to a script.
pub(crate) fn run<'m>(
    scripts: &'m Scripts,
    script: &'m Script,
    site: SiteId,
    request: &'m Request<'_, 'm>,
    spelled: &'m mut Vec<u8>,
) -> Route<'m> {
    let to = (site, scripts.group, scripts.affinity);
    let to = Distributed::whole(to, request, spelled);
    Route::Distributed(Distributed { script: Some(Run { scripts, script }), ..to })
}

impl<'m> Routed<'m> {
    pub(super) fn nowhere(route: Route<'m>) -> Self {
        let (site, scope, edits, granted, read_as) = (None, None, None, None, Vec::new());
        Self { site, scope, route, edits, granted, read_as }
    }
}

/// The status for a method that files do not have.
pub(super) fn not_for_files(method: Method<'_>) -> Status {
    match method {
        Method::Other(_) => Status::NOT_IMPLEMENTED,
        _ => Status::METHOD_NOT_ALLOWED,
    }
}
