//! The responses of the shared cache that the kernel's fast path may send: those that any request for their URL gets,
//! whatever its other fields, as long as they are fresh.

use afpa_cache::{Key, Object, Payload};
use afpa_framework::Now;
use afpa_http::caching::RequestControl;
use afpa_http::caching::cache_status::Outcome;
use afpa_http::caching::freshness::{WrittenAge, digits};
use afpa_http::caching::reuse::{self, Reuse, Stored};
use afpa_http::caching::vary;
use afpa_http::{Connection, HttpDate};
use afpa_proxy::exchange;
use afpa_proxy::request::Origin;

use crate::answer::Rest;
use crate::key;
use crate::policy::CachePolicy;
use crate::request::{METHOD_FIELDS, SiteCache};
use crate::store::stored::{Response, StoredResponse};

/// How the kernel may answer for a request set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelRules {
    /// The number of the site and its rules, which is in keys.
    pub scope: u32,
    /// Requests with one of these fields, in lower case, are user mode's.
    pub fields: Vec<String>,
    /// Answers say in Cache-Status how long they are fresh.
    pub tells: bool,
}

/// Where a stored response belongs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelPlace<'k> {
    /// [`KernelRules::scope`].
    pub scope: u32,
    /// The value of Host, in lower case.
    pub host: String,
    /// The path of its URL, as [`afpa_http::target::spell`] gives it.
    pub url: Vec<u8>,
    /// The path that the server gets, likewise.
    pub path: Vec<u8>,
    /// The query, as far as it belongs to the key. A request with exactly this one has this key.
    pub query: Option<&'k [u8]>,
    /// The response varies by Accept-Encoding: its normalised value, or `None` within if the field is not there.
    pub codings: Option<Option<&'k [u8]>>,
}

/// A stored response as it is sent now, and for how long it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelCopy<'o> {
    /// The head of the whole.
    pub head: Vec<u8>,
    /// That head for a request that asks for the connection's end.
    pub closing: Vec<u8>,
    /// Where the bytes that change with the second begin in both heads: at the `ttl` of Cache-Status, if they have it,
    /// else at the Age.
    pub changing_at: usize,
    /// The head of a 304.
    pub not_modified: Vec<u8>,
    /// That head for a request that asks for the connection's end.
    pub closing_not_modified: Vec<u8>,
    /// The place of the changing bytes in the heads of a 304.
    pub not_modified_changing_at: usize,
    /// The content.
    pub content: &'o [u8],
    /// The entity tag without `W/`; empty: there is none that could be compared.
    pub etag: &'o [u8],
    /// Last-Modified, if a date that is the same, byte by byte, may be answered with 304.
    pub last_modified: Option<&'o [u8; HttpDate::LEN]>,
    /// The second of the steady clock at which its age was 0; that may be before its epoch.
    pub born: i64,
    /// How many digits its age has.
    pub age_digits: u32,
    /// The `ttl`, if the copy says how long it is fresh.
    pub ttl: Option<KernelTtl>,
    /// The age at which it is not fresh any more, or one of the numbers has more digits or fewer.
    pub until_age: u64,
}

/// The `ttl` of a copy: the rest of its lifetime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelTtl {
    /// Seconds.
    pub lifetime: u64,
    /// How many digits the rest has.
    pub digits: u32,
}

impl KernelTtl {
    /// The `ttl` of a fresh answer.
    fn of(stored: &Stored) -> Option<Self> {
        let left = stored.lifetime.checked_sub(stored.age)?;
        Some(Self { lifetime: stored.lifetime, digits: digits(left) })
    }

    /// The age at which the rest has a digit less, or is nothing.
    fn until_age(self) -> Option<u64> {
        let least = 10_u64.checked_pow(self.digits.checked_sub(1)?)?;
        self.lifetime.checked_sub(least)?.checked_add(1)
    }
}

impl KernelRules {
    /// For a request set with kept answers of servers; `None`: the kernel may not answer. `trusted`: routers in front are
    /// believed.
    pub fn of(cache: &SiteCache, exchange: &exchange::Settings, trusted: bool) -> Option<Self> {
        let fields = fields_that_matter(&cache.policy, exchange, trusted)?;
        Some(Self { scope: cache.scope, fields, tells: cache.policy.status_field })
    }
}

/// The programs evaluate these fields themselves, so none of them can be listed as a field that matters.
const READ: [&str; 9] = [
    "accept-encoding",
    "connection",
    "content-length",
    "expect",
    "host",
    "if-modified-since",
    "if-none-match",
    "transfer-encoding",
    "upgrade",
];

/// The longest name of a field that the programs take.
const NAME_MAX: usize = 39;

/// The request fields that decide whether a kept answer is used, or which. `None`: they cannot be listed.
fn fields_that_matter(
    policy: &CachePolicy,
    exchange: &exchange::Settings,
    trusted: bool,
) -> Option<Vec<String>> {
    let listed = policy.bypass_fields.iter().map(|name| name.to_ascii_lowercase());
    let mut fields: Vec<String> = listed.collect();
    let is_told =
        |name: &String| name.len() <= NAME_MAX && !name.ends_with('*') && !READ.contains(&&**name);
    if !policy.in_kernel || !fields.iter().all(is_told) {
        return None;
    }
    let mut add = |names: &[&str]| fields.extend(names.iter().map(|name| (*name).to_owned()));
    if !policy.bypass_cookies.is_empty() || !policy.cookies.is_empty() {
        add(&["cookie"]);
    }
    if policy.obey_clients {
        add(&["cache-control", "pragma"]);
    } else if policy.codes() {
        // It may have no-transform.
        add(&["cache-control"]);
    }
    add(&METHOD_FIELDS);
    // There are too many fields of routers in front to list them.
    let passes = exchange.request.may_pass_on(Origin { trusted, ..Origin::default() });
    (!passes).then_some(fields)
}

impl StoredResponse {
    /// Whether responses of its URL vary; then whether by Accept-Encoding alone.
    pub fn varies(&self) -> Option<bool> {
        self.index().map(|index| is_accept_encoding(&index.names))
    }

    /// The key of the URL, of which this may be one of several responses.
    pub fn primary(&self, key: &Key) -> Option<Key> {
        let response = self.response()?;
        Some(Key::new(key.site, response.split(key)?.0))
    }

    /// Where it belongs; `None`: more than a URL and Accept-Encoding decide about it.
    pub fn kernel_place<'k>(&self, key: &'k Key) -> Option<KernelPlace<'k>> {
        let response = self.response()?;
        let (primary, rest) = response.split(key)?;
        let codings = match response.draft.vary() {
            [] => None,
            names if is_accept_encoding(names) => Some(vary::value_of(rest, CODINGS)?),
            _ => return None,
        };
        let key::Parts { scope, host, url, query, path } = key::parts(primary)?;
        let host = String::from_utf8(host).ok()?;
        Some(KernelPlace { scope, host, url, path, query, codings })
    }

    /// Copies that the kernel may send from now on, if it is fresh. `tells`: they say so in Cache-Status.
    pub fn kernel_copy<'o>(
        object: &'o Object<Self>,
        tells: bool,
        now: Now,
    ) -> Option<KernelCopy<'o>> {
        let response = object.header().response()?;
        let content = match object.payloads().first() {
            Some(Payload::Pinned(bytes)) => &bytes[..],
            Some(Payload::File(..)) => return None,
            None => &[],
        };
        let stored = response.at(now);
        let fresh = reuse::judge(&stored, &RequestControl::default()) == Reuse::Fresh;
        let draft = &response.draft;
        if draft.facts.status != 200 || !fresh || content.len() as u64 != response.len {
            return None;
        }
        let age = WrittenAge::of(stored.age, stored.lifetime);
        let ttl = if tells { Some(KernelTtl::of(&stored)?) } else { None };
        let until_ttl = ttl.map_or(Some(u64::MAX), KernelTtl::until_age)?;
        let cache_status = tells.then(|| Outcome::hit(&stored));
        let heads = |head: &[u8], length: Option<u64>| {
            let one = |connection| {
                let mut bytes = Vec::new();
                let rest = Rest { age: stored.age, cache_status, hsts: None, length, connection };
                let changing_at = rest.put(head, &mut bytes);
                (bytes, changing_at)
            };
            let (kept, changing_at) = one(Connection::Implied);
            (kept, one(Connection::Close).0, changing_at)
        };
        let (head, closing, changing_at) = heads(draft.head(), Some(response.len));
        let mut bare = Vec::new();
        draft.put_not_modified(&mut bare);
        let (not_modified, closing_not_modified, not_modified_changing_at) = heads(&bare, None);
        Some(KernelCopy {
            head,
            closing,
            changing_at,
            not_modified,
            closing_not_modified,
            not_modified_changing_at,
            content,
            etag: comparable_tag(response),
            last_modified: comparable_date(response),
            born: i64::from(draft.arrival.at) - i64::from(draft.arrival.initial_age),
            age_digits: age.digits,
            ttl,
            until_age: age.until.min(until_ttl),
        })
    }
}

/// Responses in the kernel may vary by this field alone.
const CODINGS: &str = "accept-encoding";

fn is_accept_encoding(names: &[Box<str>]) -> bool {
    matches!(names, [only] if **only == *CODINGS)
}

fn comparable_tag(response: &Response) -> &[u8] {
    let tag = response.draft.etag().and_then(afpa_http::etag::SentTag::parse);
    tag.map_or(&[], |tag| tag.quoted)
}

fn comparable_date(response: &Response) -> Option<&[u8; HttpDate::LEN]> {
    response.draft.facts.last_modified.get()?;
    response.draft.last_modified()?.try_into().ok()
}

#[cfg(test)]
mod tests;
