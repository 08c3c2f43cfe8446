//! Whether a stored response may answer a request (section 4), and what else is to be done.

use super::{Optional, RequestControl, ResponseControl};

/// The directives of a response that still count once it is stored, beside its lifetime.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoredControl {
    /// It must not be reused without validation.
    pub no_cache: bool,
    /// `must-revalidate` or `proxy-revalidate`: once stale it must not be used without validation.
    pub must_revalidate: bool,
    /// It has `s-maxage`, which says the same.
    pub has_s_maxage: bool,
    /// It does not change while it is fresh (RFC 8246).
    pub immutable: bool,
    /// How long after that it may be used while it is being validated (RFC 5861 section 3).
    pub stale_while_revalidate: Optional<u32>,
    /// How long after that it may be used instead of an error (RFC 5861 section 4).
    pub stale_if_error: Optional<u32>,
}

impl From<&ResponseControl> for StoredControl {
    fn from(control: &ResponseControl) -> Self {
        Self {
            no_cache: control.no_cache,
            must_revalidate: control.must_revalidate || control.proxy_revalidate,
            has_s_maxage: control.s_maxage.is_some(),
            immutable: control.immutable,
            stale_while_revalidate: control.stale_while_revalidate.into(),
            stale_if_error: control.stale_if_error.into(),
        }
    }
}

impl StoredControl {
    /// `must-revalidate` and its like go before everything that allows staleness (section 5.2.2.2). With
    /// `s-maxage` alone, the windows of RFC 5861 are the permission that section 4.2.4 asks for.
    fn must_not_be_stale(&self) -> bool {
        self.must_revalidate || self.no_cache
    }

    /// Whether it must not be used once it is stale (section 4.2.4).
    pub fn forbids_stale(&self) -> bool {
        self.must_not_be_stale() || self.has_s_maxage
    }
}

/// A stored response at some moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Its directives.
    pub control: StoredControl,
    /// How long it is fresh.
    pub lifetime: u64,
    /// How old it is now.
    pub age: u64,
    /// A purge has made it stale.
    pub purged: bool,
    /// Seconds for which the operator lets stale responses be used after an error; those of
    /// `stale-if-error` go before it.
    pub grace: u64,
}

/// How a request for a stored response is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reuse {
    /// It answers the request.
    Fresh,
    /// It answers the request, and has to be validated as well (RFC 5861 section 3).
    WhileRevalidating,
    /// The server has to say whether it is still current (section 4.3).
    Validate(Why),
}

/// Why a stored response has to be validated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// It is stale.
    Stale,
    /// It says `no-cache`.
    NoCache,
    /// The request asks for that.
    Request,
    /// It was purged softly.
    Purged,
}

/// How a stored response may be used for a request.
pub fn judge(stored: &Stored, request: &RequestControl) -> Reuse {
    let Stored { control, lifetime, age, purged, .. } = stored;
    if control.no_cache {
        return Reuse::Validate(Why::NoCache);
    }
    // A request's `no-cache` and `max-age=0` do not count while a response is immutable (RFC 8246).
    let immutable = control.immutable && age < lifetime && !purged;
    if request.no_cache && !immutable {
        return Reuse::Validate(Why::Request);
    }
    if request.max_age.is_some_and(|most| *age > u64::from(most) || (most == 0 && !immutable)) {
        return Reuse::Validate(Why::Request);
    }
    let fresh_for = lifetime.saturating_sub(*age);
    if fresh_for > 0 && !purged {
        let enough = request.min_fresh.is_none_or(|least| fresh_for >= least.into());
        return if enough { Reuse::Fresh } else { Reuse::Validate(Why::Request) };
    }
    let why = if *purged { Why::Purged } else { Why::Stale };
    let stale_for = age.saturating_sub(*lifetime);
    let within = |window: u32| stale_for < window.into();
    let revalidating = control.stale_while_revalidate.get().is_some_and(within);
    if (revalidating && !control.must_not_be_stale()) && request.min_fresh.is_none() {
        return Reuse::WhileRevalidating;
    }
    let accepted = request.max_stale.is_some_and(|most| stale_for <= most.into());
    if accepted && !purged && !control.forbids_stale() && request.min_fresh.is_none() {
        return Reuse::Fresh;
    }
    Reuse::Validate(why)
}

/// Whether a stored response may answer a request because its server failed (RFC 5861 section 4).
pub fn may_replace_error(stored: &Stored, request: &RequestControl) -> bool {
    let control = &stored.control;
    let stale_for = stored.age.saturating_sub(stored.lifetime);
    if control.must_not_be_stale() {
        return false;
    }
    let windows = [control.stale_if_error.get(), request.stale_if_error];
    if windows.into_iter().flatten().any(|window| stale_for < window.into()) {
        return true;
    }
    // The operator's grace yields to all that the response says against staleness.
    stale_for < stored.grace && control.stale_if_error.get().is_none() && !control.forbids_stale()
}

/// Whether a status is an error in the sense of RFC 5861 section 4.
pub fn is_error(status: u16) -> bool {
    matches!(status, 500 | 502 | 503 | 504)
}
