//! The parts of sites that not everybody may use (D10, D13 and D14 of `docs/rules`).

use std::net::IpAddr;
use std::sync::Arc;

use afpa_http::target::ESCAPED_SLASH;
use afpa_police::{Prefix, Rule, Rules};
use afpa_router::{Fields, Question, RequestSet, Router, SiteId};

use crate::demand::{PasswordDemand, Reserved, ServerDemand};

/// The parts of sites that not everybody may use, by what they demand. A request has to satisfy each of them.
#[derive(Debug, Default)]
pub struct Guards {
    /// An address.
    pub addresses: Places<Guard>,
    /// A name and a password; `None`: nothing, behind a path that demands them.
    pub passwords: Places<Option<Arc<PasswordDemand>>>,
    /// The consent of a server; `None`: of none, behind a path that demands one.
    pub consents: Places<Option<Arc<ServerDemand>>>,
    /// By the number of the site.
    pub reserved: Vec<Reserved>,
}

/// Parts of sites, with the demand of each. A router of their own finds them: the request set of a request may be one that
/// stands behind the guarded path.
#[derive(Debug)]
pub struct Places<T> {
    /// Its sites have the numbers of those of the other router.
    router: Arc<Router>,
    /// By the number of the request set in this router.
    demands: Vec<T>,
    /// By the number of the site, its request sets in this router.
    sites: Vec<Vec<usize>>,
}

impl<T> Default for Places<T> {
    fn default() -> Self {
        Self { router: Arc::default(), demands: Vec::new(), sites: Vec::new() }
    }
}

/// The clients that may use something.
#[derive(Debug, Default)]
pub struct Guard {
    rules: Rules,
    /// Whether clients may that no prefix has.
    others: bool,
}

impl Guard {
    /// Of the prefixes that contain a client, the longest decides. Without one, the client may if nobody is allowed by name.
    pub fn new(allow: &[Prefix], deny: &[Prefix]) -> Self {
        let rules = Rules::of(allow.iter().copied(), deny.iter().copied());
        Self { rules, others: allow.is_empty() }
    }

    /// Whether this client may. A client of a unix socket has no address.
    pub fn admits(&self, client: Option<IpAddr>) -> bool {
        let rule = client.and_then(|client| self.rules.longest(client));
        rule.map_or(self.others, |rule| rule == Rule::Allow)
    }
}

impl<T> Places<T> {
    /// Demands, each for the request set of its place.
    pub fn new(router: Arc<Router>, demands: Vec<T>) -> Self {
        debug_assert_eq!(router.sets().len(), demands.len(), "each has one");
        let most = router.sets().iter().map(|set| set.site.0 as usize + 1).max().unwrap_or(0);
        let mut sites = vec![Vec::new(); most];
        for (number, set) in router.sets().iter().enumerate() {
            if let Some(site) = sites.get_mut(set.site.0 as usize) {
                site.push(number);
            }
        }
        Self { router, demands, sites }
    }

    /// All demands.
    pub fn demands(&self) -> &[T] {
        &self.demands
    }

    /// The demand that meets a question about a site.
    pub(crate) fn find<F: Fields>(&self, site: SiteId, question: &Question<'_, F>) -> Option<&T> {
        let verdict = self.router.route_in(site, question).ok()?;
        self.demands.get(verdict.set.0 as usize)
    }

    /// The guarded request sets of a site.
    fn of(&self, site: SiteId) -> impl Iterator<Item = &RequestSet> {
        let numbers = self.sites.get(site.0 as usize).map_or(&[][..], |sets| sets);
        numbers.iter().filter_map(|number| self.router.sets().get(*number))
    }

    fn guards(&self, site: SiteId) -> bool {
        self.sites.get(site.0 as usize).is_some_and(|sets| !sets.is_empty())
    }
}

impl Guards {
    /// Whether something of a site is guarded.
    pub(crate) fn guards(&self, site: SiteId) -> bool {
        self.addresses.guards(site) || self.passwords.guards(site) || self.consents.guards(site)
    }

    /// The fields of requests to this site that no client may set.
    pub(crate) fn reserved(&self, site: SiteId) -> &[Box<str>] {
        self.reserved.get(site.0 as usize).map_or(&[], |names| names)
    }

    /// Whether some request for a path of a site may be refused; `index`: the names of files that answer for a directory.
    pub fn may_refuse(&self, site: SiteId, path: &[u8], index: &[String]) -> bool {
        let covers = |set: &RequestSet| {
            let covers_index = |name: &String| {
                set.prefix.strip_prefix(path).is_some_and(|rest| name.as_bytes().starts_with(rest))
            };
            path.starts_with(&set.prefix) || path.ends_with(b"/") && index.iter().any(covers_index)
        };
        // A server may read it in another way ([`readings`](crate::readings)).
        let has_others = memchr::memchr2(b';', ESCAPED_SLASH, path).is_some() && self.guards(site);
        let by_client = self.addresses.of(site).chain(self.passwords.of(site));
        has_others || by_client.chain(self.consents.of(site)).any(covers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_prefix_decides_and_others_may_if_nobody_is_named() {
        let prefixes = |list: &[&str]| -> Vec<Prefix> {
            list.iter().map(|text| text.parse().unwrap()).collect()
        };
        let guard = |allow, deny| Guard::new(&prefixes(allow), &prefixes(deny));
        for (allow, deny, client, admitted) in [
            (&["10.0.0.0/8"][..], &[][..], Some("10.1.2.3"), true),
            (&["10.0.0.0/8"], &[], Some("::ffff:10.1.2.3"), true),
            (&["10.0.0.0/8"], &[], Some("192.0.2.1"), false),
            (&["10.0.0.0/8"], &[], Some("::1"), false),
            (&["10.0.0.0/8"], &[], None, false),
            (&[], &["10.0.0.0/8"], Some("10.1.2.3"), false),
            (&[], &["10.0.0.0/8"], Some("192.0.2.1"), true),
            (&[], &["10.0.0.0/8"], None, true),
            (&["10.1.0.0/16"], &["10.0.0.0/8"], Some("10.1.2.3"), true),
            (&["10.1.0.0/16"], &["10.0.0.0/8"], Some("10.2.2.3"), false),
            (&["10.0.0.0/8"], &["10.1.0.0/16"], Some("10.1.2.3"), false),
            (&["::1"], &["::1"], Some("::1"), true),
        ] {
            let client = client.map(|client| client.parse().unwrap());
            assert_eq!(
                guard(allow, deny).admits(client),
                admitted,
                "{allow:?} {deny:?} {client:?}"
            );
        }
    }
}
