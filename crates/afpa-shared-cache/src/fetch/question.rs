//! A question to a server on behalf of the cache, and its outcome.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use afpa_cache::{Moment, Object, Payload};
use afpa_framework::Now;
use afpa_http::caching::store::{NotStored, Terms, judge};
use afpa_http::caching::{ResponseFacts, reuse, vary};
use afpa_http::edits::FieldRules;
use afpa_http::{FieldSlots, request};
use afpa_proxy::exchange;

use crate::fetch::Fetch;
use crate::key::{LONGEST, host_of, label_of};
use crate::plan::Fetching;
use crate::policy::{Life, Mode};
use crate::request::{ClientHead, SiteCache};
use crate::store::list::{Content, ListPlace};
use crate::store::stored::{Circumstances, Draft, Response, StoredResponse};

/// A question to a server on behalf of the cache.
#[derive(Debug)]
pub(crate) struct Question<'a> {
    pub(crate) cache: &'a SiteCache,
    pub(crate) fetching: &'a Fetching,
    pub(crate) fetch: &'a Arc<Fetch>,
    /// Settings of the exchange with the server.
    pub(crate) exchange: Arc<exchange::Settings>,
    /// For the fields that the answer varies by.
    pub(crate) head: ClientHead<'a>,
    /// The question is whether it is current.
    pub(crate) validates: bool,
    /// Whether an answer that may be kept is kept here; else another machine does so.
    pub(crate) lists: bool,
    /// Ranges of statuses whose answers clients do not get: none of them is kept.
    replaces: Option<Arc<[(u16, u16)]>>,
    /// The changes of the response's fields, if there are some.
    rules: Option<Arc<FieldRules>>,
    pub(crate) asked_at: Now,
}

/// The outcome of the question.
#[derive(Debug, Default)]
pub(crate) enum Tapped {
    /// No answer was kept or passed on yet.
    #[default]
    Nothing,
    /// The answer was kept.
    Stored,
    /// It was passed on, and not kept.
    Passed,
    /// The stored response is current, and this is its new head.
    Current(Box<Draft>),
    /// The server says that another response than the stored one is current.
    Mismatch,
    /// The server failed, and the stored response may be used instead.
    Error(u16),
}

impl<'a> Question<'a> {
    /// The question that `job` asks.
    pub(crate) fn new(
        (cache, fetching, fetch): (&'a SiteCache, &'a Fetching, &'a Arc<Fetch>),
        head: ClientHead<'a>,
        job: &exchange::Job,
        asked_at: Now,
    ) -> Self {
        let stored = fetching.stored.as_ref().and_then(|object| object.header().response());
        let validates = stored.is_some_and(|stored| stored.draft.has_validator());
        let exchange = Arc::clone(&job.settings);
        let replaces = fetching.replaces().or(job.replaces.as_ref()).cloned();
        let rules = job.edits.as_ref().map(|edits| Arc::clone(edits.rules()));
        let lists = true;
        Self { cache, fetching, fetch, exchange, head, validates, lists, replaces, rules, asked_at }
    }
}

impl Question<'_> {
    /// The place of an answer. If it is purged after the moment `since`, it is not listed.
    pub(crate) fn place<'p>(&'p self, variant: &'p Arc<[u8]>, since: Moment) -> ListPlace<'p> {
        ListPlace { primary: self.fetch.key(), variant, since }
    }

    /// The key of the request among responses that vary by these fields.
    pub(crate) fn variant(&self, names: &[Box<str>]) -> Vec<u8> {
        variant(self.fetch.primary(), names, self.head)
    }

    /// The key of a response to it.
    pub(crate) fn key(&self, draft: &Draft) -> Arc<[u8]> {
        match draft.vary().is_empty() {
            true => Arc::clone(self.fetch.key()),
            false => self.variant(draft.vary()).into(),
        }
    }

    pub(crate) fn circumstances(&self, now: Now) -> Circumstances<'_> {
        let (policy, asked_at) = (&*self.cache.policy, self.asked_at);
        let host = host_of(label_of(self.fetch.primary()));
        let rules = self.rules.as_deref();
        Circumstances { policy, asked_at, now, host, rules }
    }

    /// The stored response, as an object and as a response.
    pub(crate) fn stored_response(&self) -> Option<(&Arc<Object<StoredResponse>>, &Response)> {
        let object = self.fetching.stored.as_ref()?;
        Some((object, object.header().response()?))
    }

    /// Whether a response may be kept, as far as its fields say.
    pub(crate) fn judge(&self, facts: &ResponseFacts, life: Life) -> Result<(), NotStored> {
        let replaced = |&(first, last): &(u16, u16)| first <= facts.status && facts.status <= last;
        if self.replaces.iter().any(|ranges| ranges.iter().any(replaced)) {
            return Err(NotStored::Status);
        }
        let terms = Terms {
            lifetime: life.lifetime.into(),
            age: facts.age,
            stale_use: life.stale_use.into(),
            explicit_only: self.cache.policy.mode == Mode::Auto,
            forced: self.cache.policy.forced(facts.status).is_some(),
        };
        judge(facts, &self.fetching.requested, self.cache.policy.set_cookie, terms)
    }

    /// As [`judge`](Self::judge), of a response that has a draft, with a check of its key.
    pub(crate) fn judge_draft(
        &self,
        draft: &Draft,
        facts: &ResponseFacts,
    ) -> Result<(), NotStored> {
        self.judge(facts, draft.life)?;
        self.judge_vary(draft)
    }

    /// A response that depends on what only the proxy knows of a request has no key.
    pub(crate) fn judge_vary(&self, draft: &Draft) -> Result<(), NotStored> {
        let policy = &self.exchange.request;
        let is_mark = |name: &[u8]| self.rules.as_ref().is_some_and(|rules| rules.is_mark(name));
        let is_own = |name: &[u8]| policy.writes(name) || is_mark(name);
        if draft.vary().iter().any(|name| is_own(name.as_bytes())) {
            return Err(NotStored::VaryStar);
        }
        match self.key(draft).len() > LONGEST {
            true => Err(NotStored::LongKey),
            false => Ok(()),
        }
    }

    /// Drops the stored response and the stored parts: they are not current, unless the reason is one of the request
    /// alone.
    pub(crate) fn drop_stored(&self, why: NotStored) {
        let stored = [&self.fetching.stored, &self.fetching.base].into_iter().flatten();
        for stored in stored.filter(|_| !is_about_request(why)) {
            self.cache.responses.cache().purge(stored.key());
        }
    }

    /// Lists the stored response anew, with the head that the server says is current. `None`: it was purged meanwhile.
    pub(crate) fn freshen(&self, draft: Draft, now: Now) -> Option<Arc<Object<StoredResponse>>> {
        let (before, response) = self.stored_response()?;
        response.end_validation();
        let payload: Option<Payload> = before.payloads().first().cloned();
        let content =
            payload.map_or(Content::Nothing, |payload| Content::Whole(payload, response.len));
        let key = self.key(&draft);
        let place = self.place(&key, self.fetching.since);
        let object =
            self.cache.responses.list(&self.cache.policy, &place, draft, content, now).ok()?;
        self.cache.responses.counts.validated.fetch_add(1, Ordering::Relaxed);
        Some(object)
    }

    /// Whether the stored response may be used instead of an error.
    pub(crate) fn may_replace_error(&self, now: Now) -> bool {
        let stored = self.fetching.stored.as_ref().and_then(|object| object.header().response());
        let control = match self.cache.policy.obey_clients {
            true => self.fetching.requested.control,
            false => Default::default(),
        };
        stored.is_some_and(|stored| reuse::may_replace_error(&stored.at(now), &control))
    }
}

/// Whether a response was not kept for a reason that lies in the request, so that others may still get the stored
/// response.
pub(crate) fn is_about_request(why: NotStored) -> bool {
    use NotStored::{Authorization, LongKey, RequestNoStore, Uncoded};
    matches!(why, RequestNoStore | Authorization | LongKey | Uncoded)
}

/// The key of a request, given by its head, among responses that vary by these fields.
pub(crate) fn variant(primary: &[u8], names: &[Box<str>], head: ClientHead<'_>) -> Vec<u8> {
    let mut key = primary.to_vec();
    let mut slots = FieldSlots::new();
    if let Ok(Some(request)) = request::parse(head.bytes, &mut slots, &head.limits) {
        vary::put_key(names, &request, &mut key);
    }
    key
}
