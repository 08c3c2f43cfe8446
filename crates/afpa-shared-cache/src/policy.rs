//! The configuration of the shared cache of a site.

use std::time::Duration;

use afpa_framework::Network;
use afpa_http::CodingSet;
use afpa_http::caching::control::bounded;
use afpa_http::caching::freshness::{Heuristic, lifetime};
use afpa_http::caching::store::SetCookie;
use afpa_http::caching::{ResponseFacts, StoredControl};

/// Which answers are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Answers that say so.
    #[default]
    Auto,
    /// Also answers whose freshness can be guessed (RFC 9111 section 4.2.2).
    Heuristic,
    /// None.
    Off,
}

/// Which parameters of a query belong to the key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum QueryRule {
    /// All parameters, as they stand.
    #[default]
    All,
    /// None.
    None,
    /// Parameters with these names.
    Only(Vec<String>),
    /// All parameters but those with these names; a name may end with `*`.
    Without(Vec<String>),
}

/// The shared cache of a site, with safe defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CachePolicy {
    /// Which answers are kept.
    pub mode: Mode,
    /// How long those are fresh that say nothing, in [`Mode::Heuristic`].
    pub heuristic: Heuristic,
    /// How long answers are fresh, whatever lifetime they claim, by status code; 0: any that is no error.
    pub forced: Vec<(u16, u64)>,
    /// Seconds for which a stale answer may be used when its server fails, if the answer says nothing about that.
    pub grace: u64,
    /// How long a request waits for the answer to another one before it goes to a server itself.
    pub wait: Duration,
    /// Seconds for which requests for a URL do not wait for one another after its answer could not be kept.
    pub pass_for: u64,
    /// How answers that set cookies are treated.
    pub set_cookie: SetCookie,
    /// Targeted fields (RFC 9213), the one that counts most first.
    pub targets: Vec<String>,
    /// Which parameters of the query belong to the key.
    pub query: QueryRule,
    /// Whether the order of the parameters does not matter.
    pub sort_query: bool,
    /// Cookies whose values belong to the key.
    pub cookies: Vec<String>,
    /// Requests with one of these cookies do not use the cache; a name may end with `*`.
    pub bypass_cookies: Vec<String>,
    /// Requests with one of these fields do not use the cache.
    pub bypass_fields: Vec<String>,
    /// Clients whose PURGE requests are obeyed. Empty: PURGE goes to the server.
    pub purge_from: Vec<Network>,
    /// Answers that are kept for one URL because of its Vary.
    pub variants: usize,
    /// Pieces that are kept of an answer of which only parts came; 0: none.
    pub parts: usize,
    /// Bytes of the longest answer that is kept.
    pub largest: usize,
    /// Whether Cache-Control of a request is obeyed. Clients could else make the server work.
    pub obey_clients: bool,
    /// Whether answers have a Cache-Status field (RFC 9211).
    pub status_field: bool,
    /// Whether the fast path may answer with kept responses.
    pub in_kernel: bool,
    /// The codings in which answers pass; each answer in a coding is kept as a response of its own.
    pub codings: CodingSet,
    /// Whether responses are kept with their field sections for HTTP/3.
    pub http3: bool,
}

impl Default for CachePolicy {
    fn default() -> Self {
        Self {
            mode: Mode::Auto,
            heuristic: Heuristic::default(),
            forced: Vec::new(),
            grace: 0,
            wait: Duration::from_secs(5),
            // Varnish's default for an answer that could not be kept.
            pass_for: 120,
            set_cookie: SetCookie::Pass,
            targets: vec!["CDN-Cache-Control".into()],
            query: QueryRule::All,
            sort_query: false,
            cookies: Vec::new(),
            bypass_cookies: Vec::new(),
            bypass_fields: Vec::new(),
            purge_from: Vec::new(),
            // More than the codings and languages of a page; a server that varies by more is asked.
            variants: 32,
            parts: 8,
            largest: 4 << 20,
            obey_clients: false,
            status_field: false,
            in_kernel: true,
            codings: CodingSet::IDENTITY,
            http3: false,
        }
    }
}

/// How long a response may be used, in seconds, which are [`bounded`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Life {
    pub(crate) lifetime: u32,
    /// For so long it may be used in another way once it is stale.
    pub(crate) stale_use: u32,
    /// For so long the operator lets it be used after an error.
    pub(crate) grace: u32,
}

impl CachePolicy {
    /// Whether answers are compressed as they pass.
    pub(crate) fn codes(&self) -> bool {
        self.codings != CodingSet::IDENTITY
    }

    /// How long a response that came at `now_unix` may be used.
    pub(crate) fn life(&self, facts: &ResponseFacts, now_unix: u64) -> Life {
        let heuristic = (self.mode == Mode::Heuristic).then_some(self.heuristic);
        let own = || lifetime(facts, now_unix, heuristic);
        let control = &facts.control;
        let windows = [control.stale_while_revalidate, control.stale_if_error];
        let window = windows.into_iter().flatten().max();
        let grace = bounded(self.grace);
        let allowed = if StoredControl::from(control).forbids_stale() { 0 } else { grace };
        Life {
            lifetime: bounded(self.forced(facts.status).unwrap_or_else(own)),
            stale_use: window.unwrap_or(0).max(allowed),
            grace,
        }
    }

    /// How long a response with this status is fresh, if the operator says so.
    pub(crate) fn forced(&self, status: u16) -> Option<u64> {
        let by_status = |wanted| self.forced.iter().find(|(status, _)| *status == wanted);
        let any = || by_status(0).filter(|_| status < 400);
        by_status(status).or_else(any).map(|(_, seconds)| *seconds)
    }
}

/// Whether a name is one of the list; a `*` at the end of a listed name stands for anything.
pub(crate) fn lists(list: &[String], name: &[u8], same: fn(&[u8], &[u8]) -> bool) -> bool {
    list.iter().any(|listed| match listed.strip_suffix('*') {
        Some(begin) => name.get(..begin.len()).is_some_and(|head| same(head, begin.as_bytes())),
        None => same(name, listed.as_bytes()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(status: u16, control: &str) -> ResponseFacts {
        let fields = [(&b"cache-control"[..], control.as_bytes())];
        ResponseFacts::of(status, fields.into_iter(), &[""; 0])
    }

    #[test]
    fn the_operator_may_say_how_long_answers_are_fresh() {
        let forced = vec![(0, 60), (404, 5)];
        let policy = CachePolicy { forced, ..CachePolicy::default() };
        let life = |status, control| policy.life(&facts(status, control), 0).lifetime;
        assert_eq!((life(200, "max-age=1"), life(301, ""), life(404, "")), (60, 60, 5));
        assert_eq!(life(500, "max-age=7"), 7, "errors are forced by name alone");
    }

    #[test]
    fn names_may_end_with_a_star() {
        let list = ["session".to_owned(), "wp_*".to_owned()];
        let same = <[u8]>::eq as fn(&[u8], &[u8]) -> bool;
        assert!(lists(&list, b"session", same) && lists(&list, b"wp_x", same));
        assert!(!lists(&list, b"session2", same) && !lists(&list, b"wp", same));
    }
}
