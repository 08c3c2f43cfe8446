//! Whether a response may be stored (section 3).

use super::{RequestControl, ResponseFacts};

/// The facts of a request that decide whether the response to it may be stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Requested {
    /// Its directives.
    pub control: RequestControl,
    /// It had an Authorization field.
    pub authorised: bool,
}

/// How responses that set cookies are treated. Section 7.3 leaves that to caches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SetCookie {
    /// They are not stored, because cookies are mostly for one user.
    #[default]
    Pass,
    /// They are stored without their cookies.
    Strip,
    /// They are stored with their cookies, and every client gets them.
    Store,
}

/// Why a response is not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotStored {
    /// The request says `no-store`.
    RequestNoStore,
    /// The request has Authorization, and the response does not say that it is for others as well
    /// (section 3.5).
    Authorization,
    /// The response says `no-store`.
    NoStore,
    /// It is for one user.
    Private,
    /// It sets cookies.
    SetCookie,
    /// It depends on more than the request (section 4.1).
    VaryStar,
    /// Its status code is not known here, and it must be understood (section 5.2.2.3).
    NotUnderstood,
    /// It is an interim response, or one that says that another is still current.
    Status,
    /// It does not say that it may be stored, and its fields give it no lifetime.
    NotAllowed,
    /// It is stale when it comes, and cannot be validated.
    Useless,
    /// It is longer than the cache takes.
    TooLong,
    /// It is no part that could be used: it has several, contradicts itself, or is one of nothing that is known.
    Part,
    /// It is a stream of events, each of which is for the present listeners.
    Events,
    /// Its key would be too long.
    LongKey,
    /// It is passed on without the content coding that the same request would have got at another time.
    Uncoded,
}

impl NotStored {
    /// Every reason.
    pub const ALL: [NotStored; 15] = [
        NotStored::RequestNoStore,
        NotStored::Authorization,
        NotStored::NoStore,
        NotStored::Private,
        NotStored::SetCookie,
        NotStored::VaryStar,
        NotStored::NotUnderstood,
        NotStored::Status,
        NotStored::NotAllowed,
        NotStored::Useless,
        NotStored::TooLong,
        NotStored::Part,
        NotStored::Events,
        NotStored::LongKey,
        NotStored::Uncoded,
    ];

    /// A word for Cache-Status, logs and metrics.
    pub const fn key(self) -> &'static str {
        match self {
            NotStored::RequestNoStore => "request-no-store",
            NotStored::Authorization => "authorization",
            NotStored::NoStore => "no-store",
            NotStored::Private => "private",
            NotStored::SetCookie => "set-cookie",
            NotStored::VaryStar => "vary-star",
            NotStored::NotUnderstood => "not-understood",
            NotStored::Status => "status",
            NotStored::NotAllowed => "not-allowed",
            NotStored::Useless => "no-lifetime",
            NotStored::TooLong => "too-long",
            NotStored::Part => "part",
            NotStored::Events => "events",
            NotStored::LongKey => "long-key",
            NotStored::Uncoded => "uncoded",
        }
    }
}

/// Status codes whose meaning for a cache is known (section 3, with RFC 9110 section 15).
pub fn is_understood(status: u16) -> bool {
    matches!(status, 200 | 203 | 204 | 206 | 300..=303 | 307 | 308 | 400..=406 | 408..=417 | 421 | 422 | 426
        | 428 | 429 | 431 | 451 | 500..=505)
}

/// Status codes that may be stored though nothing says so (RFC 9110 section 15.1).
pub fn is_heuristically_cacheable(status: u16) -> bool {
    matches!(status, 200 | 203 | 204 | 206 | 300 | 301 | 308 | 404 | 405 | 410 | 414 | 501)
}

/// Whether the response to a GET request may be stored by a shared cache.
///
/// `lifetime`: how long it is fresh ([`lifetime`](super::freshness::lifetime)); `age`: how old it is
/// already. `explicit_only`: a response has to say how long it is fresh, or that it has to be validated.
/// `stale_use`: seconds for which it may be used in another way once it is stale.
///
/// # Errors
/// The first reason against it, in the order of section 3.
pub fn judge(
    facts: &ResponseFacts,
    requested: &Requested,
    cookies: SetCookie,
    terms: Terms,
) -> Result<(), NotStored> {
    let control = &facts.control;
    // 425 is about the way by which one request came (RFC 8470 section 5.2), whatever lifetime the response claims.
    if facts.status < 200 || matches!(facts.status, 304 | 425) {
        return Err(NotStored::Status);
    }
    if requested.control.no_store {
        return Err(NotStored::RequestNoStore);
    }
    match (control.must_understand, is_understood(facts.status)) {
        (true, false) => return Err(NotStored::NotUnderstood),
        (true, true) => {}
        (false, _) if control.no_store => return Err(NotStored::NoStore),
        (false, _) => {}
    }
    if control.private {
        return Err(NotStored::Private);
    }
    let shared = control.public || control.must_revalidate || control.s_maxage.is_some();
    if requested.authorised && !shared {
        return Err(NotStored::Authorization);
    }
    if facts.is_events {
        return Err(NotStored::Events);
    }
    if facts.sets_cookie && cookies == SetCookie::Pass {
        return Err(NotStored::SetCookie);
    }
    if facts.varies_by_more {
        return Err(NotStored::VaryStar);
    }
    let explicit = facts.has_lifetime() || control.no_cache || terms.forced;
    let heuristic = !terms.explicit_only
        && (control.public || is_heuristically_cacheable(facts.status))
        && (terms.lifetime > 0 || facts.has_validator());
    if !(explicit || heuristic) {
        return Err(NotStored::NotAllowed);
    }
    let useful = terms.lifetime.saturating_add(terms.stale_use) > terms.age;
    if !(useful && !control.no_cache || facts.has_validator()) {
        return Err(NotStored::Useless);
    }
    Ok(())
}

/// The facts that [`judge`] needs beside the messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// How long the response is fresh.
    pub lifetime: u64,
    /// How old it is already.
    pub age: u64,
    /// How long it may be used once it is stale.
    pub stale_use: u64,
    /// Only explicitly allowed responses are stored.
    pub explicit_only: bool,
    /// The operator has said how long it is fresh.
    pub forced: bool,
}
