//! Explains why a request belongs to its request set.

use crate::conditions::Unmet;
use crate::extension::Extension;
use crate::hosts::HostMatch;
use crate::ids::{RequestSetId, SiteId};
use crate::question::{Fields, Question};
use crate::router::Router;
use crate::verdict::Unrouted;

/// The steps of the router on its way to a verdict.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation<'r, 'q> {
    /// The site, and the pattern that the host matched.
    pub site: Option<(SiteId, HostMatch<'r>)>,
    /// The extension of the path.
    pub extension: Extension<'q>,
    /// Request sets whose prefix begins the path, in the order in which they were tried.
    pub considered: Vec<Considered<'r>>,
    /// The request set, or why there is none.
    pub outcome: Result<RequestSetId, Unrouted>,
}

/// A request set that was tried.
#[derive(Clone, Debug, PartialEq)]
pub struct Considered<'r> {
    /// Its number.
    pub set: RequestSetId,
    /// The result.
    pub outcome: MatchResult<'r>,
}

/// Whether a request set matches, or why not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatchResult<'r> {
    /// Its path does not reach as far as the request's: recursion is off, or it is exact.
    Reach,
    /// Its content group does not have the extension.
    Content,
    /// This condition is not met.
    Unmet(Unmet<'r>),
    /// It matches: this is the request set of the request.
    Taken,
}

impl Router {
    /// Decides as [`Router::route`] does, and reports each step.
    pub fn explain<'r, 'q, F: Fields>(&'r self, question: &Question<'q, F>) -> Explanation<'r, 'q> {
        let mut explanation = Explanation {
            site: self
                .hosts(question.listener)
                .and_then(|hosts| hosts.find(question.host, &mut ())),
            extension: Extension::of(question.path),
            considered: Vec::new(),
            outcome: Err(Unrouted::Misdirected),
        };
        if let Some((site, _)) = explanation.site {
            explanation.outcome = self.walk(site, question, &mut explanation.considered);
        }
        explanation
    }

    fn walk<'r, F: Fields>(
        &'r self,
        site: SiteId,
        question: &Question<'_, F>,
        seen: &mut Vec<Considered<'r>>,
    ) -> Result<RequestSetId, Unrouted> {
        let not_found = Unrouted::NotFound(site);
        let places = self.sites.get(site.0 as usize).ok_or(not_found)?;
        let last_slash = memchr::memrchr(b'/', question.path).unwrap_or(0);
        let mut see = |number: u32, outcome| {
            seen.push(Considered { set: RequestSetId(number), outcome });
        };
        let mut next = places.first(question.path, &mut ());
        while let Some(at_prefix) = next {
            for place in &at_prefix.places {
                if !place.reaches(at_prefix.prefix_len, question.path, last_slash) {
                    place.sets.clone().for_each(|number| see(number, MatchResult::Reach));
                    continue;
                }
                let candidates = place.candidates(Extension::of(question.path), &mut ());
                let unfit = place.sets.clone().filter(|number| !candidates.contains(number));
                unfit.for_each(|number| see(number, MatchResult::Content));
                for &number in candidates {
                    let outcome = self.outcome(number, question);
                    see(number, outcome);
                    if outcome == MatchResult::Taken {
                        return Ok(RequestSetId(number));
                    }
                }
            }
            next = places.next(at_prefix);
        }
        Err(not_found)
    }

    fn outcome<'r, F: Fields>(
        &'r self,
        number: u32,
        question: &Question<'_, F>,
    ) -> MatchResult<'r> {
        let Some(set) = self.sets.get(number as usize) else { return MatchResult::Content };
        match set.behaviour.conditions.unmet(set.site, question, &mut ()) {
            Some(unmet) => MatchResult::Unmet(unmet),
            None => MatchResult::Taken,
        }
    }
}
