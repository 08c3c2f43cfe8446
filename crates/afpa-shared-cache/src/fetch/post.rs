//! Keeps the answer to POST for later GET requests (RFC 9110 section 9.3.3).

use std::cell::Cell;

use afpa_cache::Moment;
use afpa_framework::Now;
use afpa_http::caching::{ResponseFacts, may_answer_get};
use afpa_proxy::exchange::{Passing, Tap};
use afpa_proxy::response::Response;

use crate::fetch::invalidate::Invalidating;
use crate::fetch::question::Question;
use crate::fetch::tap::Storing;
use crate::key::label_of;
use crate::request::Own;
use crate::store::stored::Draft;

/// The tap of a POST request whose answer may answer GET, if it says so. Like any other it drops the stored responses
/// for the URL; it is then stored in their place.
#[derive(Debug)]
pub(crate) struct Posted<'a> {
    pub(crate) invalidating: Invalidating,
    pub(crate) own: Own,
    pub(crate) question: &'a Question<'a>,
    pub(crate) goes_on: &'a Cell<bool>,
    pub(crate) storing: Option<Storing<'a>>,
}

impl Posted<'_> {
    /// Whether the answer says that it is the one to GET for its own URL.
    fn is_for_get(&self, response: &Response<'_, '_>) -> bool {
        let question = self.question;
        let lines = response.end_to_end();
        let facts =
            ResponseFacts::of(response.status, lines.clone(), &question.cache.policy.targets);
        let mut locations = lines
            .filter(|(name, _)| name.eq_ignore_ascii_case(b"content-location"))
            .map(|(_, value)| value);
        let (Some(location), None) = (locations.next(), locations.next()) else { return false };
        let is_as_ever = may_answer_get(&facts) && !response.is_makeshift;
        is_as_ever && self.own.is(location, &self.invalidating.host)
    }

    /// Drops the responses that the answer supersedes. Returns the moment after that. `None`: another request has
    /// purged one of the answer's labels since the server was asked.
    fn invalidate(
        &mut self,
        response: &Response<'_, '_>,
        draft: Option<&Draft>,
        now: Now,
    ) -> Option<Moment> {
        let question = self.question;
        let cache = question.cache.responses.cache();
        let tags = draft.map(Draft::tags).unwrap_or_default();
        let tags = tags.iter().map(|tag| &**tag);
        let labels: Vec<&[u8]> =
            std::iter::once(label_of(question.fetch.primary())).chain(tags).collect();
        // The moment is taken before the journal is looked at, so that no purge falls between the two.
        let before = cache.moment();
        let is_current = !cache.is_purged_since(question.fetching.since, &labels, |_| false);
        self.invalidating.head(response, now);
        let after = before.after(self.invalidating.purges);
        (is_current && self.question.cache.responses.cache().moment() == after).then_some(after)
    }
}

impl Tap for Posted<'_> {
    fn head(&mut self, response: &Response<'_, '_>, now: Now) -> Passing {
        self.storing = None;
        let mut storing = Storing::new(self.question, self.goes_on);
        let draft =
            if self.is_for_get(response) { storing.judge_whole(response, now).ok() } else { None };
        let after = self.invalidate(response, draft.as_ref(), now);
        if let (Some(draft), Some(after)) = (draft, after) {
            storing.since = after;
            storing.keep(draft, response.announced(), None, now);
            self.storing = Some(storing);
        }
        Passing::On
    }

    fn put_fields(&self, _: &mut Vec<u8>) {}

    fn content(&mut self, data: &[u8]) {
        if let Some(storing) = &mut self.storing {
            storing.content(data);
        }
    }

    fn whole(&mut self, now: Now) {
        if let Some(storing) = &mut self.storing {
            storing.whole(now);
        }
    }
}
