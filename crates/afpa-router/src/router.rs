//! The compiled table, and the routing decision.

use crate::extension::Extension;
use crate::hosts::Hosts;
use crate::ids::{ListenerId, RequestSetId, SiteId};
use crate::question::{Fields, Question};
use crate::site_paths::SitePaths;
use crate::steps::Steps;
use crate::table::{Content, Reach, Rewrite};
use crate::verdict::{Rewritten, Unrouted, Verdict};

/// A compiled [`Table`](crate::Table). It never changes; a reload makes another one.
#[derive(Debug, Default)]
pub struct Router {
    /// By listener.
    pub(crate) listeners: Vec<Hosts>,
    /// By site.
    pub(crate) sites: Vec<SitePaths>,
    /// By number.
    pub(crate) sets: Vec<RequestSet>,
}

/// A request set, as it was configured.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestSet {
    /// Its site.
    pub site: SiteId,
    /// Its index among the paths of the site.
    pub path: usize,
    /// Its index among the content groups of the path.
    pub content: usize,
    /// Its name in logs and metrics: site, prefix, content group.
    pub name: String,
    /// The prefix of its path.
    pub prefix: Vec<u8>,
    /// How far below the prefix it applies.
    pub reach: Reach,
    /// Content group, conditions, action, rewrite.
    pub behaviour: Content,
    /// Whether of two GET or HEAD requests, one may meet its conditions and the other not.
    pub(crate) doubtful: bool,
}

impl Router {
    /// Finds the request set of a request. Allocates nothing.
    ///
    /// # Errors
    /// [`Unrouted`] when there is none.
    #[inline]
    pub fn route<'r, 'q, F: Fields>(
        &'r self,
        question: &Question<'q, F>,
    ) -> Result<Verdict<'r, 'q>, Unrouted> {
        self.route_counted(question, &mut ())
    }

    /// As [`Router::route`], for a site that is known already: listener and host are ignored.
    ///
    /// # Errors
    /// [`Unrouted::NotFound`].
    #[inline]
    pub fn route_in<'r, 'q, F: Fields>(
        &'r self,
        site: SiteId,
        question: &Question<'q, F>,
    ) -> Result<Verdict<'r, 'q>, Unrouted> {
        self.route_counted_in(site, question, &mut ())
    }

    /// The verdict on a request that is in this request set, whatever its path is by now.
    pub fn within<'r, 'q>(&'r self, set: RequestSetId, path: &'q [u8]) -> Option<Verdict<'r, 'q>> {
        let verdict = self.set(set)?.verdict(set, path, false);
        Some(Verdict { path: Rewritten { head: &[], tail: path }, ..verdict })
    }

    /// The verdict of a request set on a normalised path, as if it had been chosen for it.
    pub fn of_set<'r, 'q>(&'r self, set: RequestSetId, path: &'q [u8]) -> Option<Verdict<'r, 'q>> {
        Some(self.set(set)?.verdict(set, path, false))
    }

    /// The site that answers for a host, in any case and without its port, on a listener.
    #[inline]
    pub fn site(&self, listener: ListenerId, host: &str) -> Option<SiteId> {
        self.hosts(listener)?.find(host, &mut ()).map(|(site, _)| site)
    }

    /// The sites that answer for a host, in any case and without its port, on any listener.
    pub fn sites(&self, host: &str) -> Vec<SiteId> {
        let found = self.listeners.iter().filter_map(|hosts| hosts.find(host, &mut ()));
        let mut sites: Vec<SiteId> = found.map(|(site, _)| site).collect();
        sites.sort_unstable();
        sites.dedup();
        sites
    }

    /// Whether host and path alone decide the route of every GET and HEAD for a site.
    pub fn only_path(&self, site: SiteId) -> bool {
        !self.sets.iter().any(|set| set.site == site && set.doubtful)
    }

    /// A request set.
    pub fn set(&self, id: RequestSetId) -> Option<&RequestSet> {
        self.sets.get(id.0 as usize)
    }

    /// All request sets, by their number.
    pub fn sets(&self) -> &[RequestSet] {
        &self.sets
    }

    #[inline]
    pub(crate) fn route_counted<'r, 'q, F: Fields>(
        &'r self,
        question: &Question<'q, F>,
        steps: &mut impl Steps,
    ) -> Result<Verdict<'r, 'q>, Unrouted> {
        let found =
            self.hosts(question.listener).and_then(|hosts| hosts.find(question.host, steps));
        let (site, _) = found.ok_or(Unrouted::Misdirected)?;
        self.route_counted_in(site, question, steps)
    }

    #[inline]
    fn route_counted_in<'r, 'q, F: Fields>(
        &'r self,
        site: SiteId,
        question: &Question<'q, F>,
        steps: &mut impl Steps,
    ) -> Result<Verdict<'r, 'q>, Unrouted> {
        let not_found = Unrouted::NotFound(site);
        let places = self.sites.get(site.0 as usize).ok_or(not_found)?;
        let extension = Extension::of(question.path);
        let last_slash = memchr::memrchr(b'/', question.path).unwrap_or(0);
        let mut certain = question.method.is_get_or_head();
        let mut next = places.first(question.path, steps);
        while let Some(at_prefix) = next {
            for place in &at_prefix.places {
                steps.step();
                if !place.reaches(at_prefix.prefix_len, question.path, last_slash) {
                    continue;
                }
                for &number in place.candidates(extension, steps) {
                    let Some(set) = self.sets.get(number as usize) else { continue };
                    certain &= !set.doubtful;
                    if set.behaviour.conditions.hold(site, question, steps) {
                        return Ok(set.verdict(RequestSetId(number), question.path, certain));
                    }
                }
            }
            next = places.next(at_prefix);
        }
        Err(not_found)
    }

    pub(crate) fn hosts(&self, listener: ListenerId) -> Option<&Hosts> {
        self.listeners.get(listener.0 as usize)
    }
}

impl RequestSet {
    fn verdict<'r, 'q>(
        &'r self,
        set: RequestSetId,
        path: &'q [u8],
        certain: bool,
    ) -> Verdict<'r, 'q> {
        let path = match &self.behaviour.rewrite {
            None | Some(Rewrite::Target(_)) => Rewritten { head: &[], tail: path },
            Some(Rewrite::Prefix { strip, head }) => {
                Rewritten { head, tail: path.get(*strip..).unwrap_or_default() }
            }
        };
        let is_plain = self.behaviour.target().is_none();
        Verdict {
            site: self.site,
            set,
            action: &self.behaviour.action,
            content: &self.behaviour,
            path,
            prefix_len: self.prefix.len(),
            certain: certain && is_plain,
        }
    }
}
