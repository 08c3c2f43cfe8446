//! A distributed request as the cache sees it.

use std::sync::Arc;

use afpa_cache::Millis;
use afpa_framework::{Client, Now};
use afpa_http::caching::{RequestControl, same_origin_path};
use afpa_http::syntax::{is_alike, list};
use afpa_http::{BodyLength, Known, Request, RequestLimits, target};
use afpa_proxy::exchange;
use afpa_proxy::request::Origin;

use crate::key;
use crate::key::cookies::possible_names;
use crate::policy::{CachePolicy, lists};
use crate::store::responses::Responses;

/// The shared cache of a site.
#[derive(Clone, Debug)]
pub struct SiteCache {
    /// Of all sites.
    pub responses: Arc<Responses>,
    /// The configuration.
    pub policy: Arc<CachePolicy>,
    /// The number of the site and its rules ([`Responses::scope`]).
    pub scope: u32,
    /// The digest of these rules, the same in each process.
    pub place: [u8; 16],
}

/// A distributed request as the cache sees it.
#[derive(Clone, Copy)]
pub struct CacheRequest<'a, 's, 'b> {
    /// The shared cache of its site.
    pub cache: &'a SiteCache,
    /// Settings of the exchange with the server.
    pub exchange: &'a exchange::Settings,
    /// The client, as far as the server learns of it.
    pub origin: Origin<'a>,
    /// The request.
    pub request: &'a Request<'s, 'b>,
    /// The path of the URL, in the spelling that servers get.
    pub url: &'a [u8],
    /// The path for the server, likewise.
    pub path: &'a [u8],
    /// The target that the client has sent, if the server learns of it and it is not that of the URL: another has taken its place,
    /// or it is spelled in another way.
    pub sent: Option<&'a [u8]>,
    /// The client of the connection.
    pub client: Client,
    /// Whether it came in early data of this connection.
    pub is_early: bool,
    /// Whether the server gets the subject of the client's certificate, or what another server says of the client. Its
    /// answer is for that client then, as with Authorization, and there is no field that its Vary could name for it.
    pub names_client: bool,
    /// Now.
    pub now: Now,
}

impl CacheRequest<'_, '_, '_> {
    pub(crate) fn steady(&self) -> Millis {
        Millis(self.now.steady_ms())
    }
}

/// The client's head, under the limits under which it was parsed.
#[derive(Clone, Copy, Debug)]
pub struct ClientHead<'a> {
    /// The head.
    pub bytes: &'a [u8],
    /// The limits.
    pub limits: RequestLimits,
}

/// The URL of a request, as its Content-Location has to name it.
#[derive(Debug)]
pub(crate) struct Own {
    /// The scheme, with its colon and slashes.
    pub(crate) scheme: Vec<u8>,
    /// As [`target::spell`] gives it.
    pub(crate) path: Vec<u8>,
    pub(crate) query: Option<Vec<u8>>,
}

impl Own {
    pub(crate) fn is(&self, location: &[u8], host: &[u8]) -> bool {
        let has_scheme = |scheme: &[u8]| {
            location.get(..scheme.len()).is_some_and(|own| own.eq_ignore_ascii_case(scheme))
        };
        if !location.starts_with(b"/") && !has_scheme(&self.scheme) {
            return false;
        }
        let Some(path) = same_origin_path(location, host) else { return false };
        let mut parts = path.splitn(2, |&byte| byte == b'?');
        let (path, query) = (parts.next().unwrap_or_default(), parts.next());
        let mut room = Vec::new();
        query == self.query.as_deref()
            && target::spell(path, &mut room).is_ok_and(|path| path == self.path)
    }
}

/// The fields of a request that decide about the cache.
pub(crate) struct Survey {
    pub(crate) control: RequestControl,
    pub(crate) authorised: bool,
}

impl Survey {
    /// `None`: the request does not use the cache.
    pub(crate) fn of(policy: &CachePolicy, request: &Request<'_, '_>) -> Option<Self> {
        let has_content = request.body != BodyLength::None || request.expect_continue;
        if has_content { None } else { Self::of_any(policy, request) }
    }

    /// As [`of`](Self::of), of a request that may have content.
    pub(crate) fn of_any(policy: &CachePolicy, request: &Request<'_, '_>) -> Option<Self> {
        if !key::is_simple(request) || request.has(Known::Upgrade) {
            return None;
        }
        let (mut authorised, mut has_control, mut has_cookie) = (false, false, false);
        for (name, value) in request.fields() {
            match name.len() {
                6 if name.eq_ignore_ascii_case("cookie") => has_cookie = true,
                6 if name.eq_ignore_ascii_case("pragma") => has_control = true,
                // Servers do not get the fields that it names, but keys may have them.
                10 if name.eq_ignore_ascii_case("connection") && names_fields(value) => {
                    return None;
                }
                13 if name.eq_ignore_ascii_case("cache-control") => has_control = true,
                13 if name.eq_ignore_ascii_case("authorization") => authorised = true,
                13 | 17 | 22 if asks_for_another_method(name) => return None,
                _ => {}
            }
            if !policy.bypass_fields.is_empty()
                && lists(&policy.bypass_fields, name.as_bytes(), is_alike)
            {
                return None;
            }
        }
        if has_cookie && !policy.bypass_cookies.is_empty() {
            let listed = |name| lists(&policy.bypass_cookies, name, <[u8]>::eq);
            if possible_names(request).any(listed) {
                return None;
            }
        }
        let values = |wanted: &'static str| {
            let lines = request.fields().filter(move |(name, _)| name.eq_ignore_ascii_case(wanted));
            lines.map(|(_, value)| value)
        };
        let control = match has_control {
            true => RequestControl::of(values("cache-control"), values("pragma")),
            false => RequestControl::default(),
        };
        Some(Self { control, authorised })
    }

    /// The directives that are obeyed.
    pub(crate) fn control(&self, policy: &CachePolicy) -> RequestControl {
        if policy.obey_clients { self.control } else { RequestControl::default() }
    }
}

/// Fields by which a request asks servers to take it for one with another method.
pub(crate) const METHOD_FIELDS: [&str; 3] =
    ["x-http-method", "x-http-method-override", "x-method-override"];

fn asks_for_another_method(name: &str) -> bool {
    METHOD_FIELDS.iter().any(|known| is_alike(name.as_bytes(), known.as_bytes()))
}

/// Whether a Connection line names more than options that every client may use.
fn names_fields(connection: &[u8]) -> bool {
    const OPTIONS: [&[u8]; 4] = [b"close", b"keep-alive", b"te", b"upgrade"];
    let is_option = |name: &[u8]| OPTIONS.iter().any(|known| name.eq_ignore_ascii_case(known));
    !list(connection).all(is_option)
}
