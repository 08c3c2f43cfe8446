//! The plan for a request that no stored response answers: how a server is asked, and how its answer is used.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use afpa_cache::{Moment, Object};
use afpa_framework::Client;
use afpa_http::caching::cache_status::Forward;
use afpa_http::caching::store::Requested;
use afpa_http::syntax::list;
use afpa_http::{Known, Method, Request, media};
use afpa_proxy::request::scheme;
use smallvec::SmallVec;

use crate::fetch::Fetch;
use crate::key::{self, Place};
use crate::peers::PeerClient;
use crate::request::{CacheRequest, Own, SiteCache, Survey};
use crate::store::partial::Ranged;
use crate::store::stored::StoredResponse;

/// How a server is asked.
#[derive(Debug)]
pub struct Plan {
    pub(crate) cache: SiteCache,
    pub(crate) what: What,
}

#[derive(Debug)]
pub(crate) enum What {
    /// For an answer that may be kept.
    Fetch(Fetching),
    /// With HEAD, about a stored response.
    Head(Fetching),
    /// With a method that may change stored responses.
    Invalidate { host: Vec<u8>, labels: Vec<Vec<u8>> },
    /// With POST, whose answer may be kept, too.
    Post { about: Box<(Vec<u8>, Vec<Vec<u8>>, Own)>, fetching: Fetching },
}

#[derive(Debug)]
pub(crate) struct Fetching {
    /// The primary key that is asked for, and its hash: here, because most keys are short.
    primary: SmallVec<[u8; 96]>,
    hash: u64,
    /// A moment before the server is asked.
    pub(crate) since: Moment,
    pub(crate) requested: Requested,
    pub(crate) why: Forward,
    /// The stored response, which must not be used as it is.
    pub(crate) stored: Option<Arc<Object<StoredResponse>>>,
    /// Parts of the response are there, but not those that are wanted.
    pub(crate) base: Option<Arc<Object<StoredResponse>>>,
    /// The server is asked for a part.
    pub(crate) ranged: Option<Ranged>,
    /// It answers the request, and is validated as well.
    pub(crate) at_once: bool,
    /// Whether requests wait for one another.
    pub(crate) collapses: bool,
    /// Whether the answer can be sent as it arrives: the request has no conditions.
    pub(crate) streams: bool,
    pub(crate) side: Side,
}

/// The part that other machines have in a fetch.
#[derive(Debug)]
pub(crate) enum Side {
    /// None: the fetch is this machine's own affair.
    Alone,
    /// Another machine may be asked first, on behalf of this client.
    Asks(PeerClient),
    /// Another machine has asked. It also gets answers with statuses in these ranges, which are not kept.
    Answers(Option<Arc<[(u16, u16)]>>),
}

impl Fetching {
    /// The client on whose behalf another machine may be asked.
    pub(crate) fn asks(&self) -> Option<PeerClient> {
        match self.side {
            Side::Asks(client) => Some(client),
            Side::Alone | Side::Answers(_) => None,
        }
    }

    /// Ranges of statuses whose answers are not kept, if they are not those of the job.
    pub(crate) fn replaces(&self) -> Option<&Arc<[(u16, u16)]>> {
        match &self.side {
            Side::Answers(ranges) => ranges.as_ref(),
            Side::Alone | Side::Asks(_) => None,
        }
    }

    /// A fetch of that, which no request has joined. It is not kept here: it has a copy of the answer, which goes with the
    /// last of those that need it, however long a client takes to read.
    pub(crate) fn fetch(&self) -> Arc<Fetch> {
        Fetch::new((&self.primary, self.hash), self.since)
    }
}

impl Plan {
    /// The plan for a question of another machine. No third machine is asked, and conditions of the request do not keep the
    /// answer from being stored. Answers with statuses in `replaces` are not stored: the other machine shows an error page in
    /// their place. `None`: other machines may not ask for such an answer.
    pub fn for_peer(self, replaces: Option<Arc<[(u16, u16)]>>) -> Option<Self> {
        let Self { cache, what } = self;
        let What::Fetch(mut fetching) = what else { return None };
        fetching.asks()?;
        (fetching.streams, fetching.collapses, fetching.at_once) = (true, true, false);
        fetching.side = Side::Answers(replaces);
        Some(Self { cache, what: What::Fetch(fetching) })
    }
}

/// The facts that are known when a server has to be asked.
pub(crate) struct Miss<'a> {
    pub(crate) primary: &'a [u8],
    pub(crate) since: Moment,
    pub(crate) stored: Option<Arc<Object<StoredResponse>>>,
    pub(crate) base: Option<Arc<Object<StoredResponse>>>,
    pub(crate) why: Forward,
    pub(crate) at_once: bool,
}

/// Plans to ask for the answer to GET, or to pass HEAD on.
pub(crate) fn for_miss(
    wanted: &CacheRequest<'_, '_, '_>,
    survey: &Survey,
    miss: Miss<'_>,
) -> Option<Plan> {
    let CacheRequest { cache, request, .. } = *wanted;
    let Miss { primary, since, stored, base, why, at_once } = miss;
    let is_plain = !request.has(Known::Range);
    let is_get = request.method == Method::Get;
    // A stored response is validated as a whole.
    let for_part = !is_plain && stored.is_none();
    let ranged = if for_part { Ranged::of(request) } else { None };
    let keeps_part = match ranged {
        Some(Ranged::Plain) => cache.policy.parts > 0,
        Some(Ranged::IfRange) => base.is_some(),
        None => false,
    };
    // The answer to HEAD only says something about a stored response.
    if (!is_get && stored.is_none()) || (for_part && !(is_get && keeps_part)) {
        return None;
    }
    cache.responses.counts.misses.fetch_add(u64::from(is_get && !at_once), Ordering::Relaxed);
    let conditions = [Known::IfNoneMatch, Known::IfModifiedSince];
    let streams = is_plain && !conditions.iter().any(|field| request.has(*field));
    // Where nothing is stored, the server gets the conditions of the client, so its answer is for this client alone.
    let is_for_all = streams || stored.is_some();
    let requested = Requested { control: survey.control, authorised: survey.authorised };
    let may_share = !requested.authorised
        && !survey.control.no_store
        && !survey.control.no_transform
        && !wants_events(request);
    let fetching = Fetching {
        primary: SmallVec::from_slice(primary),
        hash: cache.responses.hash(primary),
        since,
        requested,
        why,
        collapses: is_for_all && may_share,
        side: match may_share && is_get && is_plain {
            true => client_of(wanted).map_or(Side::Alone, Side::Asks),
            false => Side::Alone,
        },
        stored,
        base,
        ranged,
        at_once,
        streams,
    };
    let what = if is_get { What::Fetch(fetching) } else { What::Head(fetching) };
    Some(Plan { cache: cache.clone(), what })
}

/// The client of a request that another machine may answer: it has to come to the same key by the same rules.
fn client_of(wanted: &CacheRequest<'_, '_, '_>) -> Option<PeerClient> {
    let CacheRequest { request, client, origin, .. } = *wanted;
    let is_same = request.rewrites == 0 && wanted.sent.is_none() && !wanted.is_early;
    let address = match client {
        Client::Ip(address) => Some(address),
        Client::Unix => None,
    };
    let client = PeerClient { address, secure: origin.secure };
    is_same.then_some(client)
}

/// Whether a request asks for a stream of events, whose server may say nothing, not even a head, before there is one.
fn wants_events(request: &Request<'_, '_>) -> bool {
    let mut lines = request.fields().filter(|(name, _)| name.eq_ignore_ascii_case("accept"));
    lines.any(|(_, value)| list(value).any(media::is_events))
}

/// Passes on a request whose method is neither GET nor HEAD.
pub(crate) fn for_unsafe_method(wanted: &CacheRequest<'_, '_, '_>) -> Option<Plan> {
    let CacheRequest { cache, request, .. } = *wanted;
    let safe = matches!(request.method, Method::Options | Method::Trace | Method::Connect);
    if safe || request.target.path().is_none() {
        return None;
    }
    let (name, path) = (request.host.name().as_bytes(), wanted.url.to_vec());
    let query = request.target.query();
    let labels = cache.responses.url_labels(name, &path, query);
    let host = request.host.as_bytes().to_vec();
    let what = match posted(wanted) {
        None => What::Invalidate { host, labels },
        Some(fetching) => {
            let scheme = [scheme(request, wanted.origin), b"://"].concat();
            let own = Own { scheme, path, query: query.map(<[u8]>::to_vec) };
            What::Post { about: Box::new((host, labels, own)), fetching }
        }
    };
    Some(Plan { cache: cache.clone(), what })
}

/// The plan to keep the answer to a POST request; `None`: the answer may not be kept.
fn posted(wanted: &CacheRequest<'_, '_, '_>) -> Option<Fetching> {
    let CacheRequest { cache, request, .. } = *wanted;
    let SiteCache { responses, policy, scope, .. } = cache;
    if request.method != Method::Post || wanted.names_client {
        return None;
    }
    let survey = Survey::of_any(policy, request)?;
    let since = responses.cache().moment();
    let CacheRequest { url, path, origin, sent, .. } = *wanted;
    let place = Place { scope: *scope, url, path, origin, sent };
    let mut primary = Vec::new();
    key::put_primary(policy, wanted.exchange, request, place, &mut primary);
    if primary.len() > key::LONGEST {
        return None;
    }
    let requested = Requested { control: survey.control, authorised: survey.authorised };
    Some(Fetching {
        primary: SmallVec::from_slice(&primary),
        hash: responses.hash(&primary),
        since,
        requested,
        why: Forward::UriMiss,
        stored: None,
        base: None,
        ranged: None,
        at_once: false,
        collapses: false,
        streams: false,
        side: Side::Alone,
    })
}
