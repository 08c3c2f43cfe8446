//! Judges the answer of a server as it arrives, and keeps it if it may be kept.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use afpa_cache::{Moment, Object, Payload};
use afpa_framework::Now;
use afpa_http::caching::cache_status::{self, Forward, Outcome};
use afpa_http::caching::store::{NotStored, Requested, Terms, judge};
use afpa_http::caching::{ResponseFacts, reuse, vary};
use afpa_http::{FieldSlots, RequestLimits, request};
use afpa_proxy::exchange::{self, Passing, Tap};
use afpa_proxy::response;

use super::fetch::{Fetch, Phase};
use super::key::host_of;
use super::policy::{CachePolicy, Life, Mode};
use super::responses::{ListPlace, Responses};
use super::stored::{Circumstances, Draft, Response, StoredResponse};

/// A question to a server on behalf of the cache.
#[derive(Debug)]
pub(super) struct Asking {
    pub(super) responses: Arc<Responses>,
    pub(super) policy: Arc<CachePolicy>,
    /// What servers get.
    pub(super) exchange: Arc<exchange::Settings>,
    pub(super) primary: Vec<u8>,
    pub(super) hash: u64,
    pub(super) labels: Vec<Vec<u8>>,
    pub(super) since: Moment,
    pub(super) requested: Requested,
    /// The client's head, for the fields that the answer varies by.
    pub(super) head: Vec<u8>,
    pub(super) limits: RequestLimits,
    pub(super) why: Forward,
    /// What is stored, and may be current or better than an error.
    pub(super) stored: Option<Arc<Object<StoredResponse>>>,
    /// The question is whether it is current.
    pub(super) validates: bool,
    pub(super) asked: Now,
    pub(super) fetch: Arc<Fetch>,
    /// Whether the exchange goes on without its client.
    pub(super) keeps: Rc<Cell<bool>>,
    pub(super) came: RefCell<Came>,
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub(super) enum Came {
    /// Nothing that can be said.
    #[default]
    Nothing,
    /// The answer was kept.
    Stored,
    /// It was passed on, and not kept.
    Passed,
    /// The stored response is current, and this is its new head.
    Current(Arc<Draft>),
    /// The server says that another response than the stored one is current.
    Mismatch,
    /// The server failed, and the stored response may be used instead.
    Error(u16),
}

/// The tap of such a question.
#[derive(Debug)]
pub(super) struct Storing {
    asking: Rc<Asking>,
    keeping: Option<Keeping>,
    verdict: Result<(), NotStored>,
    /// Bytes of it that are counted among those on their way.
    counted: usize,
}

#[derive(Debug)]
struct Keeping {
    draft: Arc<Draft>,
    variant: Arc<[u8]>,
    bytes: usize,
}

impl Asking {
    pub(super) fn place<'a>(&'a self, variant: &'a [u8]) -> ListPlace<'a> {
        ListPlace { primary: &self.primary, variant, labels: &self.labels, since: self.since }
    }

    /// The key of the request among responses that vary by these fields.
    pub(super) fn variant(&self, names: &[Box<str>]) -> Vec<u8> {
        variant(&self.primary, names, &self.head, &self.limits)
    }

    fn circumstances(&self, now: Now, announced: Option<u64>) -> Circumstances<'_> {
        let (policy, asked) = (&*self.policy, self.asked);
        let host = self.labels.first().map(|label| host_of(label)).unwrap_or_default();
        Circumstances { policy, asked, now, announced, host }
    }

    /// What is stored, as an object and as a response.
    pub(super) fn stored_response(&self) -> Option<(&Arc<Object<StoredResponse>>, &Response)> {
        let object = self.stored.as_ref()?;
        Some((object, object.header().response()?))
    }

    /// Whether a response may be kept, as far as its fields say.
    fn judge(&self, facts: &ResponseFacts, life: Life) -> Result<(), NotStored> {
        let terms = Terms {
            lifetime: life.lifetime,
            age: facts.age,
            stale_use: life.stale_use,
            explicit_only: self.policy.mode == Mode::Auto,
            forced: life.forced,
        };
        judge(facts, &self.requested, self.policy.set_cookie, terms)
    }

    /// A response that depends on what only the proxy knows of a request has no key.
    fn judge_vary(&self, draft: &Draft) -> Result<(), NotStored> {
        let policy = &self.exchange.request;
        match draft.vary.iter().any(|name| policy.writes(name.as_bytes())) {
            true => Err(NotStored::VaryStar),
            false => Ok(()),
        }
    }

    /// What is stored is not current, if its answer was not kept for this reason.
    fn drop_stored(&self, why: NotStored) {
        if let Some(stored) = self.stored.as_ref().filter(|_| !is_about_request(why)) {
            self.responses.cache().purge(stored.key());
        }
    }

    /// Whether the stored response may be used instead of an error.
    pub(super) fn may_replace_error(&self, now: Now) -> bool {
        let stored = self.stored.as_ref().and_then(|object| object.header().response());
        let control = match self.policy.obey_clients {
            true => self.requested.control,
            false => Default::default(),
        };
        stored.is_some_and(|stored| reuse::may_replace_error(&stored.at(now), &control))
    }
}

/// Whether a response was not kept because of what the request says, so that others may still have what is stored.
fn is_about_request(why: NotStored) -> bool {
    matches!(why, NotStored::RequestNoStore | NotStored::Authorization)
}

/// The key of a request, given by its head, among responses that vary by these fields.
pub(super) fn variant(
    primary: &[u8],
    names: &[Box<str>],
    head: &[u8],
    limits: &RequestLimits,
) -> Vec<u8> {
    let mut key = primary.to_vec();
    let mut slots = FieldSlots::new();
    if let Ok(Some(request)) = request::parse(head, &mut slots, limits) {
        vary::put_key(names, &request, &mut key);
    }
    key
}

impl Storing {
    pub(super) fn new(asking: Rc<Asking>) -> Self {
        Self { asking, keeping: None, verdict: Err(NotStored::Status), counted: 0 }
    }

    /// What a 304 means that answers our own question.
    fn not_modified(&self, response: &response::Response<'_, '_>, now: Now) -> Option<Came> {
        let asking = &self.asking;
        let stored = asking.stored.as_ref().filter(|_| asking.validates)?.header().response()?;
        if !stored.draft.is_meant_by(response.end_to_end()) {
            return Some(Came::Mismatch);
        }
        let about = asking.circumstances(now, Some(stored.len));
        let Some(draft) = stored.draft.freshened(response.end_to_end(), about) else {
            return Some(Came::Mismatch);
        };
        // The 304 may have made it an answer for one user, which only the whole of it can be for this one.
        match asking.judge(&draft.facts, draft.life).and_then(|()| asking.judge_vary(&draft)) {
            Ok(()) => Some(Came::Current(Arc::new(draft))),
            Err(why) => {
                asking.drop_stored(why);
                Some(Came::Mismatch)
            }
        }
    }

    /// Whether the response may be kept, and as what.
    fn judge(&self, response: &response::Response<'_, '_>, now: Now) -> Result<Draft, NotStored> {
        let asking = &*self.asking;
        let policy = &*asking.policy;
        if response.status == 206 {
            return Err(NotStored::Status);
        }
        let lines = response.end_to_end();
        // Most answers that are not kept are known by little, so that no head is written for them.
        let facts = ResponseFacts::of(response.status, lines.clone(), &policy.targets);
        asking.judge(&facts, policy.life(&facts, now.unix()))?;
        let announced = response.announced();
        if announced.is_some_and(|length| length > policy.largest as u64) {
            return Err(NotStored::TooLong);
        }
        let line = format!("HTTP/1.1 {} {}", response.status, response.reason());
        let about = asking.circumstances(now, announced);
        let draft = Draft::new(line.as_bytes(), response.status, lines, about);
        let draft = draft.ok_or(NotStored::VaryStar)?;
        asking.judge_vary(&draft).map(|()| draft)
    }

    fn keep(&mut self, draft: Draft) {
        let asking = &self.asking;
        let draft = Arc::new(draft);
        let variant: Arc<[u8]> = match draft.vary.is_empty() {
            true => asking.primary.as_slice().into(),
            false => asking.variant(&draft.vary).into(),
        };
        asking.keeps.set(true);
        asking.fetch.arrive(Arc::clone(&draft), Arc::clone(&variant));
        self.keeping = Some(Keeping { draft, variant, bytes: 0 });
        self.verdict = Ok(());
    }

    fn pass(&mut self, why: NotStored, status: u16, now: Now) {
        let asking = &self.asking;
        self.verdict = Err(why);
        asking.keeps.set(false);
        asking.fetch.end(Phase::Passed);
        // What only this request brought about says nothing about the next one.
        if !is_about_request(why) && why != NotStored::Status {
            let until = (now.steady_ms() / 1000).saturating_add(asking.policy.pass_for);
            asking.responses.passes().note(asking.hash, until);
        }
        if let Some(count) = asking.responses.counts.passed.get(why as usize) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        if status < 500 {
            // The server has said what goes now, and it is not what is stored.
            asking.drop_stored(why);
        }
        asking.came.replace(Came::Passed);
    }

    fn give_up(&mut self) {
        self.keeping = None;
        self.asking.keeps.set(false);
        self.asking.fetch.end(Phase::Gone);
        self.asking.came.replace(Came::Passed);
        self.uncount();
    }

    fn uncount(&mut self) {
        let counted = std::mem::take(&mut self.counted);
        self.asking.responses.unbuffer(counted);
    }
}

impl Tap for Storing {
    fn head(&mut self, response: &response::Response<'_, '_>, now: Now) -> Passing {
        self.keeping = None;
        self.uncount();
        let asking = Rc::clone(&self.asking);
        if response.status == 304
            && let Some(came) = self.not_modified(response, now)
        {
            asking.came.replace(came);
            return Passing::Withheld;
        }
        if reuse::is_error(response.status) && asking.may_replace_error(now) {
            asking.came.replace(Came::Error(response.status));
            return Passing::Withheld;
        }
        asking.came.replace(Came::Nothing);
        match self.judge(response, now) {
            Ok(draft) => self.keep(draft),
            Err(why) => self.pass(why, response.status, now),
        }
        Passing::On
    }

    fn put_fields(&self, out: &mut Vec<u8>) {
        if self.asking.policy.status_field {
            let (why, stored) = (self.asking.why, self.verdict);
            let outcome = Outcome::Forwarded { why, status: None, stored, collapsed: false };
            out.extend_from_slice(b"Cache-Status: ");
            cache_status::put(&outcome, out);
            out.extend_from_slice(b"\r\n");
        }
    }

    fn content(&mut self, data: &[u8]) {
        let Some(keeping) = &mut self.keeping else { return };
        keeping.bytes = keeping.bytes.saturating_add(data.len());
        if keeping.bytes > self.asking.policy.largest || !self.asking.responses.buffer(data.len()) {
            self.give_up();
        } else {
            self.counted += data.len();
            self.asking.fetch.add(data);
        }
    }

    fn whole(&mut self, now: Now) {
        let Some(keeping) = self.keeping.take() else { return };
        let asking = &self.asking;
        let responses = &asking.responses;
        let object = room_for(responses, &asking.fetch.chunks(), asking.policy.largest).and_then(
            |content| {
                let place = asking.place(&keeping.variant);
                responses.list(&asking.policy, &place, keeping.draft, content, now)
            },
        );
        responses.passes().forget(asking.hash);
        asking.came.replace(if object.is_some() { Came::Stored } else { Came::Passed });
        responses.leave(&asking.primary, &asking.fetch);
        asking.fetch.complete(object);
        self.uncount();
    }
}

impl Drop for Storing {
    fn drop(&mut self) {
        self.uncount();
    }
}

/// The chunks as one payload; `None`: there is no room. No bytes need no room.
#[allow(clippy::type_complexity)]
fn room_for(
    responses: &Responses,
    chunks: &[Arc<[u8]>],
    largest: usize,
) -> Option<Option<(Payload, u64)>> {
    let len: usize = chunks.iter().map(|chunk| chunk.len()).sum();
    if len == 0 {
        return Some(None);
    }
    let mut room = responses.cache().reserve_now(len, largest)?;
    let mut rest = &mut room[..];
    for chunk in chunks {
        let (here, there) = rest.split_at_mut_checked(chunk.len())?;
        here.copy_from_slice(chunk);
        rest = there;
    }
    Some(Some((Payload::Pinned(room.freeze()), len as u64)))
}
