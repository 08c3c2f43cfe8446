//! Whether a client may have an answer, where that depends on more than its address.
//!
//! *Derive cached response* asks for a [`Ruling`] before every look-up. Credentials that were right before go on at once.
//! Others are checked in the thread context, and servers are asked there for their consent. Then the response is derived
//! again with what was [`Learnt`]: so there is one place that decides, and no state behind it knows of a check.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use afpa_framework::{Client, Secured};
use afpa_http::Request;
use afpa_router::{ListenerId, SiteId};
use afpa_users::Credentials;

use crate::asked::KeptRequest;
use crate::checks::Found;
use crate::demand::{Consent, Granted, PasswordDemand, ServerDemand};
use crate::global::Global;
use crate::guard::Guards;
use crate::learnt::{CheckedRequest, Learnt};
use crate::question::{client_of, question};
use crate::readings::{readings, separated};

/// The verdict on a client and a path.
pub(crate) enum Ruling {
    /// Nothing, or nothing any more.
    Free(Option<Rc<Granted>>),
    /// Its address.
    Forbidden,
    /// It has to show other credentials.
    Unauthorized(Arc<PasswordDemand>),
    /// It has to be checked first.
    Check(Arc<PasswordDemand>, Credentials),
    /// It could not be checked: too much waits for that.
    Busy,
    /// A server has to be asked first.
    Ask(Arc<ServerDemand>),
}

/// A request for a path of a site, and its client.
#[derive(Clone, Copy)]
pub(crate) struct Visit<'a, 's, 'b> {
    pub(crate) site: SiteId,
    pub(crate) way: (ListenerId, Client),
    pub(crate) request: &'a Request<'s, 'b>,
    pub(crate) tls: Option<&'a Secured>,
    pub(crate) path: &'a [u8],
    /// The names of files that answer for a directory: it needs the rights of each of them.
    pub(crate) index: &'a [String],
    /// Files answer.
    pub(crate) is_file: bool,
}

/// Decides about a request.
#[inline]
pub(crate) fn rule(global: &Global, visit: Visit<'_, '_, '_>, learnt: Option<&Learnt>) -> Ruling {
    match global.guards.as_deref().filter(|guards| guards.guards(visit.site)) {
        None => Ruling::Free(None),
        Some(guards) => judge(global, guards, visit, learnt),
    }
}

#[cold]
fn judge(
    global: &Global,
    guards: &Guards,
    visit: Visit<'_, '_, '_>,
    learnt: Option<&Learnt>,
) -> Ruling {
    let Visit { site, way: (listener, peer), request, tls, path, index, is_file } = visit;
    let client = client_of((global, site), request, peer);
    let apart = separated(path);
    let others = readings(path, &apart, index, is_file);
    let questions = || {
        let paths = std::iter::once(path).chain(others.iter().map(|other| &**other));
        paths.map(|path| question((global, listener, peer), (request, tls), path))
    };

    let mut addresses = questions().filter_map(|asked| guards.addresses.find(site, &asked));
    if addresses.any(|guard| !guard.admits(client)) {
        return Ruling::Forbidden;
    }
    let demands = questions().filter_map(|asked| guards.passwords.find(site, &asked)?.as_ref());
    let mut user = None;
    for demand in demands {
        match name_of(request, demand, learnt) {
            Ok(name) => user = user.or(Some(name)),
            Err(ruling) => return ruling,
        }
    }
    let mut consents: Vec<Rc<Consent>> = Vec::new();
    for demand in questions().filter_map(|asked| guards.consents.find(site, &asked)?.as_ref()) {
        match learnt.and_then(|learnt| learnt.consent(demand)) {
            None => return Ruling::Ask(Arc::clone(demand)),
            Some(consent) if consents.iter().any(|known| Rc::ptr_eq(known, consent)) => {}
            Some(consent) => consents.push(Rc::clone(consent)),
        }
    }
    let is_checked = user.is_some() || !consents.is_empty();
    let permit = RefCell::new(learnt.and_then(|learnt| learnt.permit.take()));
    Ruling::Free(is_checked.then(|| Rc::new(Granted { user, consents, permit })))
}

/// The user that a request shows, or why it is not let through.
fn name_of(
    request: &Request<'_, '_>,
    demand: &Arc<PasswordDemand>,
    learnt: Option<&Learnt>,
) -> Result<Arc<str>, Ruling> {
    let unauthorized = || Ruling::Unauthorized(Arc::clone(demand));
    let credentials = credentials(request).ok_or_else(unauthorized)?;
    match learnt.and_then(|learnt| learnt.of(&demand.users)) {
        Some(Found::Right(name)) => return Ok(Arc::clone(name)),
        Some(Found::Wrong) => return Err(unauthorized()),
        Some(Found::Busy) => return Err(Ruling::Busy),
        None => {}
    }
    let known = demand.users.knows(&credentials);
    known.ok_or_else(|| Ruling::Check(Arc::clone(demand), credentials))
}

/// The credentials of a request. Of two lines nobody can say which one counts.
fn credentials(request: &Request<'_, '_>) -> Option<Credentials> {
    let mut lines = request.fields().filter(|(name, _)| name.eq_ignore_ascii_case("authorization"));
    let (_, value) = lines.next()?;
    Credentials::of(value).filter(|_| lines.next().is_none())
}

/// A request whose credentials are to be checked.
pub struct PasswordCheck {
    pub(crate) request: KeptRequest,
    pub(crate) client: Client,
    pub(crate) demand: Arc<PasswordDemand>,
    pub(crate) credentials: Credentials,
    pub(crate) learnt: Learnt,
}

impl PasswordCheck {
    /// Checks them, in a thread that is for nothing else.
    pub(crate) async fn run(self) -> CheckedRequest {
        let Self { request, client, demand, credentials, mut learnt } = self;
        let found = demand.checks.run(client, &demand.users, credentials).await;
        learnt.passwords.push((Arc::clone(&demand.users), found));
        CheckedRequest { request, learnt }
    }
}
